"""Model families that TensorRT-LLM 1.2.1 builds engines of, and what upstream lists for each.

From docs/source/legacy/reference/precision.md (support matrix), examples/models/core/{llama,qwen,phi}/README.md and
docs/source/legacy/reference/support-matrix.md, read as stored texts of the 1.x line, not at the tag v1.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmTarget


@dataclass(frozen=True)
class Family:
    """``weights``: the formats that upstream lists; ``tensor_parallel``: whether it lists sharing over GPUs.

    ``exported``: whether `trtpipe export` knows its checkpoint (`quantization/exports/trtllm_layout.py`).
    """

    model_type: str
    weights: tuple[str, ...]
    source: str
    tensor_parallel: bool = True
    exported: bool = False


# Of w4a8_awq no list says which models; it stands where w4a16_awq does, unverified.
FAMILIES = (
    Family("llama", ("model", "w4a16_awq", "w4a16_gptq", "w4a8_awq", "fp8"), "precision.md: LLaMA", exported=True),
    Family("mistral", ("model", "w4a16_awq", "w4a8_awq", "fp8"), "precision.md: Mistral, without GPTQ"),
    # precision.md lists no FP8 for Qwen, the README of the example does; "not all AWQ + TP combinations" is the group
    # rule of division.py
    Family(
        "qwen2",
        ("model", "w4a16_awq", "w4a16_gptq", "w4a8_awq", "fp8"),
        "examples/models/core/qwen/README.md",
        exported=True,
    ),
    Family("qwen3", ("model", "fp8"), "examples/models/core/qwen/README.md: AWQ and GPTQ are not listed for Qwen3"),
    Family(
        "phi3",
        ("model", "fp8"),
        "examples/models/core/phi/README.md: FP8 and INT8 SmoothQuant, no AWQ or GPTQ, and TP for Phi-3-small only",
        tensor_parallel=False,
    ),
)


def family_of(model_type: str) -> Family | None:
    return next((family for family in FAMILIES if family.model_type == model_type), None)


def is_exported(model_type: str, target: TensorrtLlmTarget) -> bool:
    """True where `trtpipe export` writes the target's checkpoint; upstream's scripts write the others."""
    family = family_of(model_type)
    return family is not None and family.exported and target.weights == "w4a16_awq" and target.kv_dtype != "int8"
