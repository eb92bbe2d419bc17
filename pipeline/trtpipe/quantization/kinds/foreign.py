"""A checkpoint in another quantizer's layout, read layer by layer."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open

from trtpipe.errors import ConfigError
from trtpipe.quantization.architectures import Architecture
from trtpipe.quantization.grid import Quantized, quantize
from trtpipe.quantization.kinds import layouts
from trtpipe.quantization.kinds.recognised import Recognised

PRE_QUANT = "pre_quant_scale"
# Linears whose inputs a scale may be left on -> the linear before, whose rows take it in.
MAKER_OF = {"mlp.down_proj": "mlp.up_proj", "self_attn.o_proj": "self_attn.v_proj"}


class Foreign:
    """Linears and other tensors of each decoder layer, and the rest, by their Hugging Face names."""

    def __init__(self, folder: Path, recognised: Recognised, architecture: Architecture) -> None:
        if architecture.sparse:
            raise ConfigError(
                "checkpoints of other quantizers are read for dense models only",
                where=str(folder),
                fix="quantization.kind: awq",
            )
        self.folder, self.recognised = folder, recognised
        self.linears = tuple(name for group in architecture.dense for name in group.linears)
        self._files = {name: path for path in sorted(folder.glob("*.safetensors")) for name in _names(path)}
        self.plainly_rounded: set[str] = set()

    def layer(self, index: int) -> tuple[dict[str, Quantized], dict[str, torch.Tensor]]:
        """Return the linears of a decoder layer, and its other tensors, by their names within the layer."""
        prefix = f"model.layers.{index}."
        linears = {name: self._linear(prefix, name) for name in self.linears}
        others = {
            name.removeprefix(prefix): self.tensor(name)
            for name in self._files
            if name.startswith(prefix) and self._is_other(name.removeprefix(prefix))
        }
        for name, maker in MAKER_OF.items():
            if f"{maker}.bias" in others and (scale := self._left_on(prefix, name)) is not None:
                others[f"{maker}.bias"] = others[f"{maker}.bias"] * scale.to(others[f"{maker}.bias"].dtype)
        return linears, others

    def rest(self) -> dict[str, torch.Tensor]:
        """Return the tensors outside the decoder layers."""
        return {name: self.tensor(name) for name in self._files if not name.startswith("model.layers.")}

    def tensor(self, name: str) -> torch.Tensor:
        if name not in self._files:
            raise ConfigError(
                f"the checkpoint has no tensor `{name}`", where=str(self.folder), fix="use a complete checkpoint"
            )
        with safe_open(self._files[name], framework="pt") as file:
            found: torch.Tensor = file.get_tensor(name)
        return found

    def _linear(self, prefix: str, name: str) -> Quantized:
        full = prefix + name
        if self.recognised.layout == "autoawq":
            return layouts.autoawq(self.tensor, full)
        if self.recognised.layout == "gptq":
            found = self.recognised
            return layouts.gptq(self.tensor, full, symmetric=found.symmetric, zero_offset=found.zero_offset)
        if f"{full}.weight_scale" not in self._files:
            self.plainly_rounded.add(name)
            return quantize(self.tensor(f"{full}.weight").float(), self.recognised.group_size)
        reader = next((reader for reader, maker in MAKER_OF.items() if maker == name), None)
        return layouts.modelopt(self.tensor, full, self._left_on(prefix, reader) if reader else None)

    def _left_on(self, prefix: str, name: str) -> torch.Tensor | None:
        """Return the scale that ModelOpt leaves on a linear's input, if any: the linear before takes it in exactly."""
        full = f"{prefix}{name}.{PRE_QUANT}"
        return self.tensor(full) if full in self._files else None

    def _is_other(self, name: str) -> bool:
        module, _, kind = name.rpartition(".")
        return kind == "bias" or (kind == "weight" and module not in self.linears)


def _names(path: Path) -> list[str]:
    with safe_open(path, framework="pt") as file:
        return list(file.keys())
