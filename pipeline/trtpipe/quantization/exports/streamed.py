"""Write a safetensors file tensor by tensor: the header first, from what the tensors will be."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import torch

# names of the format's own specification (safetensors `safetensors/src/tensor.rs`, enum Dtype)
DTYPE_NAMES = {torch.int8: "I8", torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32"}
HEADER_ALIGNMENT_BYTES = 8


@dataclass(frozen=True)
class TensorSpec:
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class StreamedFile:
    """A context: tensors are written in the order of ``specs``; the file gets its name when it is whole.

    Every size must be a multiple of four bytes, so that each tensor starts where its type may.
    """

    def __init__(self, path: Path, specs: list[TensorSpec]) -> None:
        self.path = path
        self._specs = specs
        self._written = 0
        self._temporary = path.with_name(f".{path.name}.tmp")

    def __enter__(self) -> StreamedFile:
        self._file = self._temporary.open("wb")
        header = _header(self._specs)
        self._file.write(len(header).to_bytes(8, "little") + header)
        return self

    def write(self, name: str, tensor: torch.Tensor) -> None:
        spec = self._specs[self._written]
        if (name, tensor.dtype, tuple(tensor.shape)) != (spec.name, spec.dtype, spec.shape):
            raise ValueError(f"expected {spec}, got {name} {tensor.dtype} {tuple(tensor.shape)}")
        self._file.write(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
        self._written += 1

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        whole = kind is None and self._written == len(self._specs)
        if whole:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        if whole:
            self._temporary.replace(self.path)
            return
        self._temporary.unlink()
        if kind is None:
            raise ValueError(f"{len(self._specs) - self._written} tensors of {self.path.name} were not written")


def _header(specs: list[TensorSpec]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for spec in specs:
        end = offset + spec.size_bytes
        entries[spec.name] = {
            "dtype": DTYPE_NAMES[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % HEADER_ALIGNMENT_BYTES)
