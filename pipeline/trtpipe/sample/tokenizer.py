"""The GGUF file's tokenizer as Hugging Face files.

It is rebuilt from the tokens and merges. The rules around them (digits one by one, byte-level words, nothing
added to a text) are what the GGUF calls the pre-tokenizer ``smollm``; loaders that guess them from the model
type get other ids. The rebuilt tokenizer gives llama.cpp's fingerprint text exactly the ids whose hash
llama.cpp lists for the original tokenizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gguf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from trtpipe.errors import EnvironmentUnfit
from trtpipe.sample.weights import metadata

if TYPE_CHECKING:
    from trtpipe.core.chat import ChatTokenizer

NAMED_TOKENS = {
    "bos_token": "tokenizer.ggml.bos_token_id",
    "eos_token": "tokenizer.ggml.eos_token_id",
    "unk_token": "tokenizer.ggml.unknown_token_id",
    "pad_token": "tokenizer.ggml.padding_token_id",
}

# Digits stand alone; special tokens have one id; white space, contractions and other scripts are byte-level.
KNOWN_IDS = {
    "The capital of France is Paris.": (504, 3575, 282, 4649, 314, 7042, 30),
    "In 2024, 42 paid $3.50": (788, 216, 34, 32, 34, 36, 28, 216, 36, 34, 5940, 1885, 35, 30, 37, 32),
    "  two  spaces\n\n\ttab": (216, 827, 216, 5600, 1116, 197, 15999),
    "I've told 'em: don't!": (57, 3543, 3783, 637, 391, 42, 1326, 982, 17),
    "naïve café, 東京 😀": (3546, 46494, 37366, 28, 17097, 247, 126, 16736, 122, 40303, 218),
    "½ of x² = ٣": (16738, 282, 1792, 19133, 446, 216, 164, 113),
    "<|im_start|>user\nHi<|im_end|>\n": (1, 4093, 198, 26843, 2, 198),
    "<|endoftext|>": (0,),
}


def build(reader: gguf.GGUFReader) -> Tokenizer:
    """Return the byte-level BPE tokenizer; control tokens are special."""
    tokens = metadata(reader, "tokenizer.ggml.tokens")
    types = metadata(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in metadata(reader, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, types, strict=True) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return tokenizer


def settings(reader: gguf.GGUFReader) -> dict[str, dict[str, Any]]:
    """Return the JSON files that belong to the tokenizer, by name."""
    tokens = metadata(reader, "tokenizer.ggml.tokens")
    named = {name: tokens[metadata(reader, key)] for name, key in NAMED_TOKENS.items()}
    return {
        "special_tokens_map.json": named,
        "tokenizer_config.json": {
            **named,
            "add_bos_token": metadata(reader, "tokenizer.ggml.add_bos_token"),
            "chat_template": metadata(reader, "tokenizer.chat_template"),
            "clean_up_tokenization_spaces": False,
            "model_max_length": metadata(reader, "llama.context_length"),
            # Any more specific class makes transformers 5 replace the pre-tokenizer by that class's own.
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        "generation_config.json": {
            "bos_token_id": metadata(reader, NAMED_TOKENS["bos_token"]),
            "eos_token_id": metadata(reader, NAMED_TOKENS["eos_token"]),
            "pad_token_id": metadata(reader, NAMED_TOKENS["pad_token"]),
        },
    }


def require_known_ids(tokenizer: ChatTokenizer) -> None:
    """Encode and decode the known texts. Raises EnvironmentUnfit at the first difference."""
    for text, ids in KNOWN_IDS.items():
        found = tuple(tokenizer.encode(text))
        returned = tokenizer.decode(ids, skip_special_tokens=False)
        if found != ids or returned != text:
            raise EnvironmentUnfit(
                f"the rebuilt tokenizer is wrong: {text!r} -> {found}, expected {ids}; those decode to {returned!r}",
                where="the installed tokenizers package",
                fix="install the versions that `pip install 'trtpipe[vllm]'` names",
            )
