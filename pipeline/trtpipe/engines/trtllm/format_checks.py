"""Does TensorRT-LLM build this format of this model on this GPU, and what does the builder change without asking?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm import capability
from trtpipe.engines.trtllm.capability import FP8_WORKFLOW, KV_DTYPES, KV_WORDS, QUANT_ALGO, Capability
from trtpipe.engines.trtllm.families import FAMILIES, family_of
from trtpipe.engines.trtllm.findings import Finding

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmKvDtype, TensorrtLlmTarget
    from trtpipe.engines.trtllm.gpus import Gpu
    from trtpipe.engines.trtllm.lengths import Lengths
    from trtpipe.engines.trtllm.shape import DecoderShape


@dataclass(frozen=True)
class Quantized:
    """What the model folder is already. ``weights``: the format that an engine of it has; ``words``: whose it is."""

    weights: str
    words: str
    group_size: int


def family(target: TensorrtLlmTarget, shape: DecoderShape) -> Iterator[Finding]:
    found = family_of(shape.model_type)
    if found is None:
        yield Finding(
            "refused",
            f"the model type `{shape.model_type}` is not planned for TensorRT-LLM {target.version}",
            "config.json model_type",
            fix=f"planned: {', '.join(one.model_type for one in FAMILIES)}; or the local engine",
        )
        return
    if target.weights not in found.weights:
        yield Finding(
            "refused",
            f"{QUANT_ALGO[target.weights]} is not listed for `{shape.model_type}`",
            "weights",
            why="upstream lists the formats that its quantizer and loader know for a family; another fails in the "
            "conversion or gives wrong text",
            fix=f"listed: {', '.join(found.weights)}; or the local engine",
            source=found.source,
        )
    if target.tensor_parallel > 1 and not found.tensor_parallel:
        yield Finding(
            "refused",
            f"tensor parallelism is not listed for `{shape.model_type}`",
            "tensor_parallel",
            fix="tensor_parallel: 1, and one engine a GPU",
            source=found.source,
        )


def origin(target: TensorrtLlmTarget, quantized: Quantized | None) -> Iterator[Finding]:
    """Yield what is wrong where the model folder is quantized already."""
    if quantized is None:
        return
    if quantized.weights != target.weights:
        yield Finding(
            "refused",
            f"the model is {quantized.words}: to TensorRT-LLM that is {QUANT_ALGO[quantized.weights]}, and the target "
            f"says {QUANT_ALGO[target.weights]}",
            "weights",
            why="the label tells the loader how codes lie; under the wrong one the engine builds and answers nonsense",
            fix=f"weights: {quantized.weights}, or the unquantized model",
            source="tensorrt_llm/models/modeling_utils.py; TensorRT-LLM issues 2803 and 2458",
        )
    elif quantized.group_size != target.group_size:
        yield Finding(
            "refused",
            f"the model has groups of {quantized.group_size}, the target says {target.group_size}",
            "group_size",
            fix=f"group_size: {quantized.group_size}",
        )


def engine(target: TensorrtLlmTarget, gpu: Gpu) -> Iterator[Finding]:
    """Yield the refusal where the table has no engine of the target's formats on the GPU."""
    row = capability.capability_of(target.version, target.weights, target.kv_dtype, gpu.sm)
    if row is not None and row.built:
        return
    others = ", ".join(_buildable(target, gpu)) or "none"
    yield Finding(
        "refused",
        f"there is no engine for {gpu.name} (SM {gpu.sm}) with {QUANT_ALGO[target.weights]} weights and "
        f"{KV_WORDS[target.kv_dtype]} KV cache",
        "weights, kv_dtype, gpu",
        why=row.why if row else f"the capability table of {target.version} has no such row",
        fix=f"weights that this GPU takes with this KV cache: {others}",
        source=row.source if row else None,
    )


def _buildable(target: TensorrtLlmTarget, gpu: Gpu) -> Iterator[str]:
    for weights in QUANT_ALGO:
        row = capability.capability_of(target.version, weights, target.kv_dtype, gpu.sm)
        if row is not None and row.built:
            yield weights


def switched_off(
    target: TensorrtLlmTarget, row: Capability, gpu: Gpu, tokens: dict[TensorrtLlmKvDtype, int], lengths: Lengths | None
) -> Iterator[Finding]:
    """Yield what becomes of paged context FMHA. ``tokens``: the KV pool of each type that has been counted."""
    if row.paged_context_fmha:
        return
    asked = [name for name in ("kv_reuse", "chunked_context") if getattr(target, name)]
    what = f"{QUANT_ALGO[target.weights]} with {KV_WORDS[target.kv_dtype]} KV cache: paged context FMHA is switched off"
    ways = list(_ways_out(target, gpu, tokens))
    if asked:
        what += f", so {' and '.join(asked)} cannot be had"
        ways.append(f"keep this KV cache and write {', '.join(f'{name}: false' for name in asked)}")
    saved = ""
    if lengths is not None and lengths.reuse_share is not None:
        saved = f" (it would save {lengths.reuse_share:.1%} of this log's prefill)"
    yield Finding(
        "refused" if asked else "changed",
        what,
        "kv_dtype",
        why=row.why,
        cost=f"no KV reuse{saved}, no chunked context: a prompt is prefilled whole, in one step of max_num_tokens",
        fix="; or ".join(ways) or None,
        source=row.source,
    )


def _ways_out(target: TensorrtLlmTarget, gpu: Gpu, tokens: dict[TensorrtLlmKvDtype, int]) -> Iterator[str]:
    counted = tokens if {"model", target.kv_dtype} <= tokens.keys() else None
    held = f" ({counted['model']:,} KV tokens instead of {counted[target.kv_dtype]:,})" if counted else ""
    yield f"kv_dtype: model keeps both{held}"
    if gpu.sm >= 89 and target.kv_dtype == "fp8_e4m3":
        yield f"FP8 KV keeps both under weights: {' or '.join(FP8_WORKFLOW)}"


def speculation(target: TensorrtLlmTarget, row: Capability, batch_size: int) -> Iterator[Finding]:
    mode = capability.speculation_of(target.version, target.speculative_mode)
    words = f"speculative_mode {mode.mode}"
    if mode.needs_paged_context_fmha and not row.paged_context_fmha:
        yield Finding(
            "refused",
            f"{words} needs paged context FMHA, which {KV_WORDS[target.kv_dtype]} KV under "
            f"{QUANT_ALGO[target.weights]} does not have",
            "speculative_mode, kv_dtype",
            why=mode.needs_paged_context_fmha,
            fix="kv_dtype: model, or speculative_mode: none",
            source=mode.source,
        )
    if mode.unserved:
        yield Finding(
            "refused",
            f"{words} is not served: the engine would be built for it, and run without it",
            "speculative_mode",
            why=mode.unserved,
            fix="speculative_mode: none, draft_tokens_max: 0",
            source=mode.source,
        )
    if mode.heads:
        yield Finding(
            "refused", f"{words} needs {mode.heads}, and a plain causal LM has none", "speculative_mode",
            fix="speculative_mode: none", source=mode.source,
        )  # fmt: skip
    if mode.listed_weights and target.weights not in mode.listed_weights:
        yield Finding(
            "warning", f"{words} is not listed with {QUANT_ALGO[target.weights]} weights", "speculative_mode, weights",
            why=f"upstream lists it with {' and '.join(mode.listed_weights)}", source=mode.source,
        )  # fmt: skip
    for most, value, key in (
        (mode.batch_size_max, batch_size, "max_batch_size"),
        (mode.draft_tokens_max, target.draft_tokens_max, "draft_tokens_max"),
    ):
        if most is not None and value > most:
            yield Finding("refused", f"{words} takes at most {key} {most}, not {value}", key, source=mode.source)
    if (mode.mode == "none") != (target.draft_tokens_max == 0):
        yield Finding(
            "refused", f"{words} with draft_tokens_max {target.draft_tokens_max}", "draft_tokens_max",
            fix="give both, or neither",
        )  # fmt: skip


def risks(target: TensorrtLlmTarget, shape: DecoderShape, gpu: Gpu) -> Iterator[Finding]:
    """Yield what is legal and has gone wrong for others."""
    if target.kv_dtype == "model":
        return
    if shape.biased_qkv and not shape.normed_qk:
        yield Finding(
            "warning",
            f"{KV_WORDS[target.kv_dtype]} KV caches of models with biased q, k and v have been seen to fail",
            "kv_dtype",
            why="the bias gives keys a few large channels, and one scale holds for all of a layer",
            cost="wrong or meaningless answers, without an error",
            fix="promote only on a passed drift check of this engine, or kv_dtype: model",
            source="TensorRT-LLM issue 4218",
        )
    if target.kv_dtype == "fp8_e4m3" and target.weights == "w4a16_gptq":
        yield Finding(
            "warning",
            "an FP8 KV cache under W4A16_GPTQ has scales of 1.0: nothing calibrates them",
            "kv_dtype, weights",
            why="the converter takes the scales as 1.0",
            cost="values above 448 are cut off; a model may lose accuracy without an error",
            fix="kv_dtype: model, or weights: w4a16_awq with calibrated scales",
            source=capability.CONVERTER,
        )
    if target.kv_dtype == "fp8_e4m3" and gpu.sm < 89:
        yield Finding(
            "warning",
            f"SM {gpu.sm} has no FP8 conversion in hardware: the kernels convert each value in software",
            "kv_dtype, gpu",
            cost="decoding may be slower than with a 16-bit KV cache; no public figures of it on this GPU were found",
            fix="measure both KV types on the GPU before deciding",
            source="XQA utils.cuh: hardware conversion from compute capability 8.9",
        )


def kv_rows(target: TensorrtLlmTarget, gpu: Gpu) -> dict[TensorrtLlmKvDtype, Capability | None]:
    """Return the table's row of each KV type, for the target's weights and GPU."""
    return {kv: capability.capability_of(target.version, target.weights, kv, gpu.sm) for kv in KV_DTYPES}
