"""What TensorRT-LLM does with a weight format, a KV cache type and a GPU, as a table.

T: is NVIDIA/TensorRT-LLM. Its files were read as stored texts of the 1.x line, not at the tag v1.2.1: `builder.py` of
October 2025, three months before the branch of 1.2 left main, each rule of `build()` line by line. Where a row rests
on anything else, ``verified`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtpipe.config.target import SpeculativeMode, TensorrtLlmKvDtype

Weights = Literal["w4a16_awq", "w4a16_gptq", "w4a8_awq", "fp8", "model"]
KV_DTYPES: tuple[TensorrtLlmKvDtype, ...] = ("model", "fp8_e4m3", "int8")
KV_WORDS: dict[TensorrtLlmKvDtype, str] = {"model": "16-bit", "fp8_e4m3": "FP8", "int8": "INT8"}
KV_BYTES: dict[TensorrtLlmKvDtype, int] = {"model": 2, "fp8_e4m3": 1, "int8": 1}
FP8_WORKFLOW: tuple[Weights, ...] = (
    "fp8",
    "w4a8_awq",
)  # quant_algo FP8 and W4A8_AWQ: the builder's list has NVFP4 too, not planned here
GROUPWISE = ("w4a16_awq", "w4a16_gptq", "w4a8_awq")
QUANT_ALGO: dict[str, str] = {
    "w4a16_awq": "W4A16_AWQ", "w4a16_gptq": "W4A16_GPTQ", "w4a8_awq": "W4A8_AWQ", "fp8": "FP8", "model": "none",
}  # fmt: skip
# T:cpp/tensorrt_llm/kernels/decoderMaskedMultiheadAttention/decoderMaskedMultiheadAttentionLaunch.h, checked at
# plugin creation (attentionOp.cpp)
HEAD_WIDTHS = (32, 48, 64, 80, 96, 104, 112, 128, 144, 160, 192, 224, 256)


@dataclass(frozen=True)
class Capability:
    """One row, for GPUs of ``sm_min`` to ``sm_max``. ``built`` false: there is no such engine.

    ``paged_context_fmha`` is what the built engine has when it was asked for; KV ``reuse`` and ``chunked_context``
    follow. ``why``: of what is off or missing.
    """

    weights: tuple[Weights, ...]
    kv_dtype: TensorrtLlmKvDtype
    sm_min: int
    sm_max: int
    built: bool
    paged_context_fmha: bool
    why: str
    source: str
    verified: str = "builder.py and the runtime's sources, stored texts of the 1.x line"

    @property
    def reuse(self) -> bool:
        return self.paged_context_fmha

    @property
    def chunked_context(self) -> bool:
        return self.paged_context_fmha


@dataclass(frozen=True)
class Speculation:
    """A speculative mode. ``needs_paged_context_fmha``: why the target's engine must have it; empty: it need not.

    ``heads``: what the model itself must have for it; ``listed_weights``: where upstream lists formats, these;
    ``unserved``: why no release of this program serves it; empty: one does.
    """

    mode: SpeculativeMode
    needs_paged_context_fmha: str = ""
    heads: str = ""
    unserved: str = ""
    listed_weights: tuple[Weights, ...] = ()
    source: str = ""
    batch_size_max: int | None = None
    draft_tokens_max: int | None = None
    verified: str = "builder.py and the legacy guide, stored texts of the 1.x line"


BUILDER = "T:tensorrt_llm/builder.py build()"
RUNTIME = "T:cpp/tensorrt_llm/batch_manager/trtGptModelInflightBatching.cpp"
PLUGIN = "T:cpp/tensorrt_llm/common/attentionOp.cpp"
MATRIX = "T:docs/source/legacy/reference/support-matrix.md"
CONVERTER = "T:examples/models/core/{llama,qwen}/convert_checkpoint.py"
_PLAIN: tuple[Weights, ...] = ("model", "w4a16_awq", "w4a16_gptq")
_NO_INT8 = "paged context FMHA has no kernel for an INT8 KV cache: the builder switches it off"
_NO_FP8_KERNEL = (
    "paged context FMHA on an FP8 KV cache needs FP8 context FMHA, which is for FP8 weights or activations only: the "
    "builder switches both off and says so in a line of its log"
)
_GPTQ_INT8 = (
    "the converter calibrates an INT8 KV cache by running the float model, and has no such route for a quantized one"
)
_SM89 = "FP8 activations need SM 89 or newer"
_INT_ON_100 = "the builder refuses int4 and int8 weights and INT8 KV caches on SM 100 to 119"

CAPABILITIES: dict[str, tuple[Capability, ...]] = {
    "1.2.1": (
        Capability(_PLAIN, "model", 80, 99, True, True, "", f"{BUILDER}; {RUNTIME}"),
        Capability(("model", "w4a16_awq"), "int8", 80, 99, True, False, _NO_INT8, f"{BUILDER}; {PLUGIN}; {RUNTIME}"),
        Capability(
            ("w4a16_gptq",), "int8", 80, 99, False, False, _GPTQ_INT8, CONVERTER,
            verified="not verified: inferred from the script's options",
        ),
        Capability(
            _PLAIN, "fp8_e4m3", 89, 99, True, False, _NO_FP8_KERNEL,
            f"{BUILDER}; {RUNTIME}; TensorRT-LLM issues 8862 and 9253",
        ),
        Capability(
            _PLAIN, "fp8_e4m3", 80, 88, True, False, _NO_FP8_KERNEL, f"{BUILDER}; {RUNTIME}",
            verified="that it is built, and what is off: builder.py. That it runs well on SM 80 and 86: not verified",
        ),
        Capability(FP8_WORKFLOW, "model", 89, 99, True, True, "", f"{BUILDER}; {RUNTIME}"),
        Capability(FP8_WORKFLOW, "fp8_e4m3", 89, 99, True, True, "", f"{BUILDER}; {PLUGIN}; {RUNTIME}"),
        Capability(FP8_WORKFLOW, "int8", 89, 99, True, False, _NO_INT8, f"{BUILDER}; {PLUGIN}; {RUNTIME}"),
        *(
            Capability(FP8_WORKFLOW, kv, 80, 88, False, False, _SM89, MATRIX, verified="support-matrix.md")
            for kv in KV_DTYPES
        ),
        *(
            Capability(("w4a16_awq", "w4a16_gptq"), kv, 100, 119, False, False, _INT_ON_100, BUILDER)
            for kv in KV_DTYPES
        ),
    ),
}  # fmt: skip
_NO_TREE = "a release gives Triton's backend no tree of choices and no decoding mode for it"
_BUILDER = f"{BUILDER}; T:docs/source/legacy/advanced/speculative-decoding.md"

SPECULATIONS: dict[str, tuple[Speculation, ...]] = {
    "1.2.1": (
        Speculation("none"),
        Speculation(
            "draft_tokens_external", needs_paged_context_fmha="the target engine takes drafts through reused KV blocks",
            listed_weights=("model", "fp8"), source="T:examples/draft_target_model/README.md",
            unserved="it takes a second engine, of a draft model, which a release has no place for",
            verified="the README, stored text of the 0.18 line",
        ),
        Speculation(
            "eagle", heads="an EAGLE head", unserved=_NO_TREE, source=_BUILDER,
            batch_size_max=512, draft_tokens_max=256,
            needs_paged_context_fmha="the builder switches it on again for EAGLE, whatever the KV type allows",
        ),
        Speculation("medusa", heads="Medusa heads", unserved=_NO_TREE, source=_BUILDER),
        Speculation("explicit_draft_tokens", heads="a ReDrafter head", unserved=_NO_TREE, source=_BUILDER),
        Speculation(
            "lookahead_decoding", source=f"{_BUILDER}; tensorrtllm_backend issues 710 and 711, TensorRT-LLM issue 2263",
            unserved="Triton's backend was seen to end at the start with such an engine, to take no request without "
            "lookahead sizes of its own, and to answer wrongly from the second request on: three open issues",
            verified="not verified with each KV type",
        ),
    ),
}  # fmt: skip


def capability_of(version: str, weights: str, kv_dtype: TensorrtLlmKvDtype, sm: int) -> Capability | None:
    """Return the row; None where the table says nothing."""
    return next(
        (
            row
            for row in CAPABILITIES[version]
            if weights in row.weights and row.kv_dtype == kv_dtype and row.sm_min <= sm <= row.sm_max
        ),
        None,
    )


def speculation_of(version: str, mode: SpeculativeMode) -> Speculation:
    return next(row for row in SPECULATIONS[version] if row.mode == mode)
