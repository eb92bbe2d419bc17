"""Is this folder the TensorRT-LLM checkpoint that the plan is of? Compared before the hours of a build."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm.build import checkpoint_layout
from trtpipe.engines.trtllm.capability import QUANT_ALGO
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.plan import Plan

KV_ALGO = {"model": None, "fp8_e4m3": "FP8", "int8": "INT8"}
UNQUANTIZED = (None, "none")
# What the layer of a format reads: tensorrt_llm/quantization/quantize.py (weight_only_groupwise_quantize) hands both to
# WeightOnlyGroupwiseQuantLinear. Every checkpoint of AutoAWQ or GPTQ that is taken here has zero points.
FLAGS = {
    "w4a16_awq": {"has_zero_point": False, "pre_quant_scale": True},
    "w4a16_gptq": {"has_zero_point": True, "pre_quant_scale": False},
}
MAKING = "`trtpipe build-engine --dry-run` without --checkpoint"


def require(folder: Path, plan: Plan) -> None:
    """Raise ConfigError for all that the folder is not, or has otherwise than the plan."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise ConfigError(
            f"no TensorRT-LLM checkpoint: config.json can't be read ({fault})",
            where=str(folder),
            fix=f"{MAKING} prints the line that makes one",
        ) from None
    if "mapping" not in config or "architecture" not in config:
        raise ConfigError(
            "no TensorRT-LLM checkpoint: its config.json has no `architecture` and `mapping`",
            where=str(path),
            fix=f"trtllm-build reads its own layout only; {MAKING} prints the line that makes it",
        )
    division, target = plan.division, plan.target
    # where the engine widens its linears by itself, the checkpoint's config.json has the model's own width
    intermediate = division.shape.intermediate if division.pads_itself else division.intermediate
    rows = [
        *format_rows(config, target),
        ("num_key_value_heads", config.get("num_key_value_heads"), division.shape.kv_heads),
        ("num_hidden_layers", config.get("num_hidden_layers"), division.shape.layers),
        ("hidden_size", config.get("hidden_size"), division.shape.hidden),
        ("intermediate_size", config.get("intermediate_size"), intermediate),
    ]
    fix = "export again with the target's settings, or correct the target"
    problems: list[TrtpipeError] = [*checkpoint_layout.key_problems(config, division.shape.model_type, str(path))]
    problems += [
        ConfigError(f"the checkpoint's {key} is {found}, and the plan says {wanted}", where=str(path), fix=fix)
        for key, found, wanted in rows
        if found != wanted
    ]
    ranks = target.tensor_parallel * target.pipeline_parallel
    for rank in range(ranks):
        file = folder / f"rank{rank}.safetensors"
        if not file.is_file() or file.stat().st_size == 0:
            problems.append(ConfigError(f"the checkpoint lacks rank {rank}", where=str(file), fix="export it again"))
    raise_all([*problems, *checkpoint_layout.tensor_problems(folder, plan)])


def format_rows(config: dict[str, Any], target: TensorrtLlmTarget) -> Iterator[tuple[str, Any, Any]]:
    """Yield key, what a checkpoint's config (or the engine's `pretrained_config`) says, and what the target says."""
    mapping, quantization = config.get("mapping") or {}, config.get("quantization") or {}
    yield "mapping.tp_size", mapping.get("tp_size"), target.tensor_parallel
    yield "mapping.pp_size", mapping.get("pp_size"), target.pipeline_parallel
    yield "dtype", config.get("dtype"), target.dtype
    algo = quantization.get("quant_algo")
    yield "quantization.quant_algo", "none" if algo in UNQUANTIZED else algo, QUANT_ALGO[target.weights]
    yield "quantization.kv_cache_quant_algo", quantization.get("kv_cache_quant_algo"), KV_ALGO[target.kv_dtype]
    if "w4" in target.weights:
        yield "quantization.group_size", quantization.get("group_size"), target.group_size
    if target.weights in FLAGS:
        for key, wanted in FLAGS[target.weights].items():
            yield f"quantization.{key}", quantization.get(key, False), wanted
