"""A real, tiny Llama that answers every prompt with a fixed round of letters: a stand-in can say what it prefers.

Its embeddings are orthogonal, and its head maps each letter's to the next letter's; all else is random.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SENTENCE = "abcdefgh"
CERTAIN = 20.0  # the logit of a letter's successor


def save(folder: Path, tokenizer: Path, **shape: Any) -> Path:
    """Save it with a tokenizer of one token a byte, whose prompts end with a line end."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=False, torch_dtype="float32"))
    width, vocabulary = shape["hidden_size"], shape["vocab_size"]
    byte_of = {letter: rank(letter) for letter in "\n" + SENTENCE}
    before = ["\n", *SENTENCE]
    with torch.no_grad():
        embeddings = torch.linalg.qr(torch.randn(width, vocabulary)).Q.T * width**0.5
        model.model.embed_tokens.weight.copy_(embeddings)
        model.lm_head.weight.normal_(0.0, 0.05)
        for letter, following in zip(before, [*SENTENCE, SENTENCE[0]], strict=True):
            model.lm_head.weight[byte_of[following]] += embeddings[byte_of[letter]] * CERTAIN / width
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, folder / name)
    return folder


def rank(letter: str) -> int:
    """Return a byte's id in the tokenizer of ``calibration.tiny``: its place in the sorted byte-level alphabet."""
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return alphabet.index("Ċ" if letter == "\n" else letter)
