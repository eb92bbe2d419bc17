"""Who makes the TensorRT-LLM checkpoint of a plan, and the exact line that does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.chain.plan import OURS
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.conversion import CONVERTERS, conversion_command
from trtpipe.quantization.exports.trtllm_layout import MODELS
from trtpipe.quantization.kinds.recognised import quantization_of, recognise

if TYPE_CHECKING:
    from trtpipe.chain.plan import Planned
    from trtpipe.config.target import TensorrtLlmTarget

# --qformat of T:examples/quantization/quantize.py, and its --kv_cache_dtype
QFORMATS = {"w4a16_awq": "int4_awq", "w4a8_awq": "w4a8_awq", "fp8": "fp8", "model": "full_prec"}
KV_FORMATS = {"fp8_e4m3": "fp8", "int8": "int8"}
SOURCE_TREE = "in TensorRT-LLM's source tree of the same version (/app/tensorrt_llm in its image)"


@dataclass(frozen=True)
class Line:
    """A command to give, and what it is for."""

    purpose: str
    words: list[str]


def lines(planned: Planned, out: Path) -> list[Line]:
    """Return what makes the checkpoint in ``out``. Raises ConfigError where nothing that is known here does."""
    target, model = planned.plan.target, planned.model
    model_type, layout = planned.plan.division.shape.model_type, _layout(model)
    if layout == "autoawq":
        if model_type not in CONVERTERS:
            raise _no_way(planned, f"TensorRT-LLM's converter of `{model_type}` takes no AutoAWQ checkpoint")
        words = conversion_command(
            model_type, model, out, tensor_parallel=target.tensor_parallel,
            pipeline_parallel=target.pipeline_parallel, dtype=target.dtype,
        )  # fmt: skip
        if target.kv_dtype == "fp8_e4m3":
            if model_type != "llama":
                raise _no_way(planned, f"its converter of `{model_type}` has no FP8 KV cache")
            words.append("--fp8_kv_cache")
        return [Line(f"AutoAWQ to W4A16_GPTQ, {SOURCE_TREE}", words)]
    if layout == "gptq":
        raise _no_way(planned, "the converter's options for GPTQ were not checked against upstream")
    if _is_exported(target, model_type):
        return [Line("the checkpoint: codes and scales as calibrated, one file a rank", _export(planned, layout, out))]
    return [Line(f"the checkpoint, {SOURCE_TREE}, on a GPU", _quantize(target, model, out))]


def _layout(model: Path) -> str | None:
    found = quantization_of(model)
    if not found:
        return None
    return OURS if found.get("quant_method") == OURS else recognise(model).layout


def _is_exported(target: TensorrtLlmTarget, model_type: str) -> bool:
    known = {model.model_type for model in MODELS}
    return target.weights == "w4a16_awq" and target.kv_dtype != "int8" and model_type in known


def _export(planned: Planned, layout: str | None, out: Path) -> list[str]:
    target, words = planned.plan.target, ["trtpipe", "export"]
    if layout == OURS:
        words.append(str(planned.model))
    elif layout == "modelopt":
        words += ["--set", "quantization.kind=existing", "--set", f"quantization.checkpoint={planned.model}"]
    else:
        words += ["--set", f"model={planned.model}"]
    words += [
        "--format", "tensorrt-llm", "--tensor-parallel", str(target.tensor_parallel),
        "--pipeline-parallel", str(target.pipeline_parallel), "--dtype", target.dtype,
        "--kv-cache", "fp8" if target.kv_dtype == "fp8_e4m3" else "model",
    ]  # fmt: skip
    return [*words, *(["--pad"] if target.pad_intermediate else []), "--out", str(out)]


def _quantize(target: TensorrtLlmTarget, model: Path, out: Path) -> list[str]:
    words = [
        "python3", "examples/quantization/quantize.py", "--model_dir", str(model), "--output_dir", str(out),
        "--qformat", QFORMATS[target.weights], "--dtype", target.dtype,
        "--tp_size", str(target.tensor_parallel), "--pp_size", str(target.pipeline_parallel),
    ]  # fmt: skip
    if "awq" in target.weights:
        words += ["--awq_block_size", str(target.group_size)]
    return [*words, *(["--kv_cache_dtype", KV_FORMATS[target.kv_dtype]] if target.kv_dtype in KV_FORMATS else [])]


def _no_way(planned: Planned, why: str) -> ConfigError:
    return ConfigError(
        f"no line for the checkpoint is known: {why}",
        where=str(planned.model),
        fix="make it with TensorRT-LLM's scripts and give its folder with --checkpoint; or start from the unquantized "
        "model",
    )
