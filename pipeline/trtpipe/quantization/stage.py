"""The stage ``calibrate``: model + calibration set -> int4 checkpoint with FP8 KV scales."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from trtpipe.core import environment, golden_ids
from trtpipe.core.artifacts import Artifact
from trtpipe.core.process import run_worker
from trtpipe.core.runner import Making, Stage
from trtpipe.core.sharing import Decoder
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.divide import legal
from trtpipe.quantization.exports.trtllm_layout import MODELS

WIDTH_KEYS = ("hidden_size", "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
ATTENTION_WIDTH = "num_attention_heads x head_dim"
# Widths -> the linears that read an input so wide.
READERS = {
    "hidden_size": "the q, k, v, gate and up projections",
    "intermediate_size": "the down projections",
    "moe_intermediate_size": "the experts' down projections",
    "shared_expert_intermediate_size": "the shared expert's down projection",
    ATTENTION_WIDTH: "the o projections",
}


class AwqRecipe(BaseModel):
    """What decides the checkpoint, apart from the model and the calibration set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    group_size: int
    alpha_grid_points: int
    symmetric: bool
    inputs: str
    kv_scales: str


def stage(
    model: Path, model_digest: str, prompts: Artifact, recipe: AwqRecipe, *, processes: int, time_limit_s: float
) -> Stage:
    return Stage(
        name="calibrate",
        kind="checkpoint",
        revision=8,
        inputs={"model": model_digest, "prompt-set": prompts.digest},
        parameters=recipe,
        versions={
            name: environment.version_of(name, extra="vllm") for name in ("torch", "transformers", "safetensors")
        },
        make=lambda making: _make(making, model, prompts, recipe, processes, time_limit_s),
        resumable=True,
    )


def group_size_for(model: Path, asked: int | str) -> int:
    """Return the group size. Raises ConfigError naming every width that it does not divide, and whose inputs it is."""
    config = json.loads((model / "config.json").read_text("utf-8"))
    widths = _widths(config)
    fitting = [size for size in (128, 64) if all(width % size == 0 for width in widths.values())]
    if asked == "auto" and fitting:
        return fitting[0]
    if asked in fitting:
        return int(asked)
    size = 64 if asked == "auto" else int(asked)
    layers = f"in {config['num_hidden_layers']} layers" if "num_hidden_layers" in config else "in every layer"
    offending = [
        f"{key} {width} (the input of {READERS[key]}, {layers})" for key, width in widths.items() if width % size
    ]
    raise ConfigError(
        f"group size {size} does not divide {'; '.join(offending)}",
        where=str(model / "config.json"),
        fix=f"legal group sizes for this model: {', '.join(map(str, fitting)) or 'none of 64 and 128'}"
        + _tensor_parallel_text(config, fitting),
    )


def _widths(config: dict[str, Any]) -> dict[str, int]:
    """Return how wide the inputs of the linears are, by what config.json calls it."""
    widths = {key: int(config[key]) for key in WIDTH_KEYS if key in config}
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return widths | {ATTENTION_WIDTH: head_dim * int(config["num_attention_heads"])}


def _tensor_parallel_text(config: dict[str, Any], group_sizes: list[int]) -> str:
    """Say which TP values TensorRT-LLM could share the model out over, where it knows the model."""
    if config.get("model_type") not in {model.model_type for model in MODELS}:
        return ""
    sizes = legal(Decoder.from_config(config), pad_intermediate=False)
    texts = [f"group {size}: TP {', '.join(map(str, sizes[size])) or 'none'}" for size in group_sizes]
    return f" (on TensorRT-LLM {'; '.join(texts)})" if texts else ""


def _make(
    making: Making, model: Path, prompts: Artifact, recipe: AwqRecipe, processes: int, time_limit_s: float
) -> None:
    result = run_worker(
        "trtpipe.quantization.worker",
        {
            "model": str(model),
            "prompts": str(prompts.path / "calibration.jsonl"),
            "folder": str(making.folder),
            "processes": processes,
            **recipe.model_dump(),
        },
        log=making.log,
        reporter=making.reporter,
        time_limit_s=time_limit_s,
        # Threads that spin while they wait starve each other where cores are shared.
        environment={"OMP_WAIT_POLICY": "passive"},
    )
    golden_ids.carry(prompts.path, making.folder)
    widest = max(_widths(json.loads((model / "config.json").read_text("utf-8"))).values())
    if result["calibration_tokens"] < widest:
        making.note(
            f"{result['calibration_tokens']:,} calibration tokens are fewer than the {widest:,} channels of the widest "
            "input: G is singular there, and the damping decides; more prompts make it better"
        )
    dead = {
        f"layer {layer['layer']} `{error['group']}`": error["dead_channels"]
        for layer in result["layers"]
        for error in layer["errors"]
        if error["dead_channels"]
    }
    if dead:
        making.note(
            f"{sum(dead.values()):,} input channel(s) were 0 for every calibration token, first in {next(iter(dead))}: "
            "nothing but the weights decides their codes; if real traffic uses them, the calibration set is too narrow"
        )
    making.figures |= summary(result["layers"]) | {
        "group_size": recipe.group_size,
        "calibration_tokens": result["calibration_tokens"],
        "computed_on": result["computed_on"],
        "peak_rss_mib": result["peak_rss_mib"],
        "per_layer": result["layers"],
    }


def summary(layers: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean relative output errors over all layers and scale groups that saw tokens."""
    errors = [error for layer in layers for error in layer["errors"] if error["tokens"]]
    return {
        f"relative_error_{name}_mean": round(sum(error[name] for error in errors) / len(errors), 6)
        for name in ("plain_rounding", "awq", "final")
    }
