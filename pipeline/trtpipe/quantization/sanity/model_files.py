"""The model that a checkpoint was made from, layer by layer: unquantized, or 4-bit in a layout that is read here."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch

from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.trtllm_tensors import EMBEDDING, HEAD, NORM
from trtpipe.quantization.kinds.foreign import Foreign
from trtpipe.quantization.kinds.recognised import quantization_of, recognise
from trtpipe.quantization.stack import DecoderStack

CANONICAL = "compressed-tensors"


class Layers(Protocol):
    """Weights by Hugging Face names: of a decoder layer within it, and of what stands around the layers."""

    def layer(self, index: int) -> dict[str, torch.Tensor]: ...

    def embedding(self) -> torch.Tensor: ...

    def norm(self) -> torch.Tensor: ...

    def head(self) -> torch.Tensor: ...


def open_model(folder: Path, stack: DecoderStack) -> Layers:
    """Open a model's folder. Raises ConfigError where it is 4-bit in a layout that is not read."""
    found = quantization_of(folder)
    if not found:
        return Unquantized(stack)
    if found.get("quant_method") == CANONICAL:
        return Canonical(stack, Checkpoint(folder))
    return TakenOver(stack, Foreign(folder, recognise(folder), stack.architecture))


class Unquantized:
    """The model as it is. The others differ from it in their decoder layers."""

    def __init__(self, stack: DecoderStack) -> None:
        self.stack = stack

    def layer(self, index: int) -> dict[str, torch.Tensor]:
        stored = self.stack.architecture.stored
        return {name: self.stack.tensor(stored(f"model.layers.{index}.{name}")) for name in self.stack.shapes(index)}

    def embedding(self) -> torch.Tensor:
        return self.stack.tensor(EMBEDDING)

    def norm(self) -> torch.Tensor:
        return self.stack.tensor(NORM)

    def head(self) -> torch.Tensor:
        return self.embedding() if self.stack.config.tie_word_embeddings else self.stack.tensor(HEAD)


class Canonical(Unquantized):
    """A checkpoint of ``calibrate``."""

    def __init__(self, stack: DecoderStack, checkpoint: Checkpoint) -> None:
        super().__init__(stack)
        self.checkpoint = checkpoint

    def layer(self, index: int) -> dict[str, torch.Tensor]:
        prefix = f"model.layers.{index}."
        return {name: self._tensor(prefix + name) for name in self.stack.shapes(index)}

    def _tensor(self, name: str) -> torch.Tensor:
        linear = name.removesuffix(".weight")
        if self.checkpoint.has(f"{linear}.weight_packed"):
            return self.checkpoint.linear(linear).weight()
        return self.checkpoint.tensor(name)


class TakenOver(Unquantized):
    """A checkpoint of AutoAWQ, GPTQ or ModelOpt in its Hugging Face layout."""

    def __init__(self, stack: DecoderStack, foreign: Foreign) -> None:
        super().__init__(stack)
        self.foreign = foreign

    def layer(self, index: int) -> dict[str, torch.Tensor]:
        linears, others = self.foreign.layer(index)
        return others | {f"{name}.weight": quantized.weight() for name, quantized in linears.items()}
