"""Checkpoints that are quantized already: whose they are, and what can be done with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trtpipe.errors import ConfigError, expecting

CONFIG, MODELOPT_CONFIG = "config.json", "hf_quant_config.json"
Layout = Literal["autoawq", "gptq", "modelopt"]
MAKERS: dict[str, str] = {"autoawq": "AutoAWQ", "gptq": "GPTQ", "modelopt": "ModelOpt"}
TAKEN = "int4 weights with 16-bit activations in groups"


@dataclass(frozen=True)
class Recognised:
    """An int4 checkpoint of another quantizer. ``zero_offset``: what GPTQ's files leave off each zero point."""

    layout: Layout
    group_size: int
    symmetric: bool
    zero_offset: int = 0

    @property
    def words(self) -> str:
        kind = "symmetric" if self.symmetric else "with zero points"
        return f"{MAKERS[self.layout]}, 4 bits, group size {self.group_size}, {kind}"


def recognise(folder: Path) -> Recognised:
    """Return what a folder holds. Raises ConfigError where it is no int4 checkpoint of AutoAWQ, GPTQ or ModelOpt."""
    found = quantization_of(folder)
    method = found.get("quant_method")
    if method == "awq" and (found.get("version", "gemm").lower(), found.get("bits", found.get("w_bit"))) == ("gemm", 4):
        return Recognised(
            "autoawq", int(found["group_size" if "group_size" in found else "q_group_size"]), symmetric=False
        )
    if method == "gptq" and found.get("bits") == 4 and not found.get("desc_act"):
        # AutoGPTQ wrote zero points less one; GPTQModel's second form does not
        offset = 0 if found.get("checkpoint_format") == "gptq_v2" else 1
        return Recognised("gptq", int(found["group_size"]), bool(found.get("sym")), zero_offset=offset)
    if method == "modelopt" and found.get("quant_algo") == "W4A16_AWQ":
        return Recognised("modelopt", int(found["group_size"]), symmetric=True)
    raise ConfigError(
        f"not a checkpoint that can be taken over: {_described(found)}",
        where=str(folder / CONFIG),
        fix=f"AutoAWQ GEMM, GPTQ with desc_act false, or ModelOpt W4A16_AWQ: {TAKEN}",
    )


def require_unquantized(model: Path) -> None:
    """Raise ConfigError where the folder given as `model` is quantized already, saying what can be done with it."""
    found = quantization_of(model)
    if not found:
        return
    fix = "give the unquantized model that it was made from"
    try:
        taken = recognise(model)
    except ConfigError:
        raise ConfigError(
            f"the model is quantized already: {_described(found)}", where=str(model / CONFIG), fix=fix
        ) from None
    more = ", and this folder as quantization.checkpoint with quantization.kind existing: its codes are kept"
    if taken.layout != "modelopt":
        more += "; TensorRT-LLM's convert_checkpoint.py makes W4A16_GPTQ of it, never W4A16_AWQ"
    raise ConfigError(f"the model is quantized already: {taken.words}", where=str(model / CONFIG), fix=fix + more)


def quantization_of(folder: Path) -> dict[str, Any]:
    """Return a folder's quantization settings, with `quant_method`; empty for an unquantized model."""
    with expecting(folder / CONFIG, "fetch the model's own config.json"):
        config = json.loads((folder / CONFIG).read_text("utf-8"))
        found: dict[str, Any] = dict(config.get("quantization_config") or {})
    own = folder / MODELOPT_CONFIG
    if own.is_file():
        # config.json repeats it in the terms of compressed-tensors, by which vLLM reads it
        with expecting(own, "fetch the checkpoint's own file"):
            found = {"quant_method": "modelopt", **json.loads(own.read_text("utf-8"))["quantization"]}
    return found


def _described(found: dict[str, Any]) -> str:
    if not found:
        return "config.json has no quantization_config"
    told = ("quant_method", "quant_algo", "version", "format", "bits", "group_size", "desc_act")
    return ", ".join(f"{name} {found[name]}" for name in told if name in found)
