"""The converting child process: GGUF file -> Hugging Face model folder, then a look at whether it speaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import safetensors.torch
import torch
from transformers import AutoModelForCausalLM

from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.worker import serve
from trtpipe.errors import EnvironmentUnfit
from trtpipe.sample import tokenizer, weights

if TYPE_CHECKING:
    from trtpipe.core.worker import Events

QUESTION = "What is the capital of France?"
EXPECTED_WORD = "Paris"
ANSWER_TOKENS_MAX = 16


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Convert and check. The job: gguf (file), folder (exists, is filled)."""
    folder = Path(job["folder"])
    reader = gguf.GGUFReader(job["gguf"])
    parameters = _write_weights(reader, folder, events)
    tokenizer.build(reader).save(str(folder / "tokenizer.json"))
    for name, content in {"config.json": weights.config(reader), **tokenizer.settings(reader)}.items():
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    chat = ChatTokenizer.load(folder)
    tokenizer.require_known_ids(chat)
    answer = _answer(folder, chat)
    if EXPECTED_WORD not in answer:
        raise EnvironmentUnfit(
            f"the converted model answers {QUESTION!r} with {answer!r}; {EXPECTED_WORD!r} was expected",
            where="the installed gguf, torch and transformers packages",
            fix="install the versions that `pip install 'trtpipe[vllm]'` names",
        )
    return {"parameters": parameters, "vocabulary_tokens": chat.tokenizer.get_vocab_size(), "answer": answer}


def _write_weights(reader: gguf.GGUFReader, folder: Path, events: Events) -> int:
    """Write ``model.safetensors`` in bfloat16 and return how many parameters it holds."""
    total = len(reader.tensors)
    converted: dict[str, torch.Tensor] = {}
    for index, (name, weight) in enumerate(weights.tensors(reader)):
        events.progress("convert tensor", index, total)
        converted[name] = torch.tensor(weight, dtype=torch.bfloat16)
    events.progress("convert tensor", total, total)
    # Written from memory: the library's own file writing leaves a file that only its owner can read.
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(converted, metadata={"format": "pt"}))
    return sum(tensor.numel() for tensor in converted.values())


def _answer(folder: Path, chat: ChatTokenizer) -> str:
    """Return the greedy answer to ``QUESTION``."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, local_files_only=True)
    prompt = chat.encode_chat([{"role": "user", "content": QUESTION}])
    ids = torch.tensor([prompt])
    generated = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=ANSWER_TOKENS_MAX, do_sample=False
    )
    return chat.decode(generated[0, len(prompt) :].tolist())


if __name__ == "__main__":
    serve(work)
