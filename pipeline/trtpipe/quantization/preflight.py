"""What is wrong with a model folder as input of the quantization, seen before a weight is loaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtpipe.core.model_folder import highest_token_id
from trtpipe.errors import ConfigError, TrtpipeError, expecting, raise_all
from trtpipe.quantization.architectures import architecture_of
from trtpipe.quantization.kinds.recognised import require_unquantized

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
# Model types whose config.json need not say that they are tied (their classes in transformers).
TIED_BY_DEFAULT = ("gemma2",)
CHUNK_BYTES = 1 << 24


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies: bytes ``start`` to ``end`` of its file."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def check(model: Path) -> None:
    """Compare config.json, tokenizer and tensor headers. Raises ConfigError with all problems at once.

    A model that is quantized already is refused first: its tensors are others.
    """
    require_unquantized(model)
    config = json.loads((model / "config.json").read_text("utf-8"))
    architecture_of(config["model_type"], where=str(model / "config.json"))
    tensors = stored_tensors(model)
    raise_all(_vocabulary_problems(model, config, tensors) + _head_problems(model, config, tensors))


def stored_tensors(model: Path) -> dict[str, Stored]:
    """Read the headers of all safetensors files: 8 bytes of length, then JSON with offsets after it."""
    found = {}
    for path in sorted(model.glob("*.safetensors")):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            with expecting(path, "fetch the file again"):
                for name, entry in json.loads(file.read(length)).items():
                    if name != "__metadata__":
                        start, end = (8 + length + offset for offset in entry["data_offsets"])
                        found[name] = Stored(path, entry["dtype"], tuple(entry["shape"]), start, end)
    return found


def _vocabulary_problems(model: Path, config: dict[str, Any], tensors: dict[str, Stored]) -> list[TrtpipeError]:
    stated = config.get("vocab_size")
    problems: list[TrtpipeError] = [
        ConfigError(
            f"`{name}` has {tensors[name].shape[0]} rows, config.json says vocab_size {stated}",
            where=str(tensors[name].path),
            fix="make vocab_size and the embedding agree",
        )
        for name in (EMBEDDING, HEAD)
        if name in tensors and stated is not None and tensors[name].shape[0] != stated
    ]
    highest = highest_token_id(model / "tokenizer.json")
    if EMBEDDING in tensors and highest >= tensors[EMBEDDING].shape[0]:
        problems.append(
            ConfigError(
                f"the tokenizer's ids go up to {highest}, the embedding has {tensors[EMBEDDING].shape[0]} rows: "
                "a prompt with one beyond would have no embedding",
                where=str(model / "tokenizer.json"),
                fix="use the tokenizer that belongs to the model, or widen the embedding",
            )
        )
    return problems


def _head_problems(model: Path, config: dict[str, Any], tensors: dict[str, Stored]) -> list[TrtpipeError]:
    """Tied embeddings say that the head is the embedding: then the files must not say otherwise."""
    if EMBEDDING not in tensors:
        return []
    where = str(model / "config.json")
    tied = config.get("tie_word_embeddings", config.get("model_type") in TIED_BY_DEFAULT)
    if not tied and HEAD not in tensors:
        return [
            ConfigError(
                f"there is no `{HEAD}`, and config.json does not tie it to the embedding",
                where=where,
                fix="fetch the missing weights, or set tie_word_embeddings to true if the model is tied",
            )
        ]
    if tied and HEAD in tensors and not _same_bytes(tensors[EMBEDDING], tensors[HEAD]):
        return [
            ConfigError(
                f"config.json ties the head to the embedding, and the files hold another `{HEAD}`",
                where=where,
                fix="set tie_word_embeddings to false if the head is the model's own, or remove it from the files",
            )
        ]
    return []


def _same_bytes(one: Stored, other: Stored) -> bool:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    with one.path.open("rb") as first, other.path.open("rb") as second:
        first.seek(one.start)
        second.seek(other.start)
        left = one.end - one.start
        while left > 0:
            size = min(CHUNK_BYTES, left)
            if first.read(size) != second.read(size):
                return False
            left -= size
    return True
