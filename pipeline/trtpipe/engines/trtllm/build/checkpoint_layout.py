"""What of a checkpoint TensorRT-LLM would refuse, or read as something else: its keys and its tensors' names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.core import weight_files
from trtpipe.errors import ConfigError, TrtpipeError

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.plan import Plan

FILE = Path(__file__).with_name("checkpoint.toml")
MODELS = ("llama", "mistral", "qwen2")  # whose tensors' names the table has
FORMATS = ("w4a16_awq", "w4a16_gptq")
CLOSED = ("quantization", "mapping")  # unknown keys are an error
NAMED_MAX = 3
# tensorrt_llm/models/modeling_utils.py preprocess_weights makes one of two
ONE_OF_TWO = "kv_cache_scaling_factor"


@dataclass(frozen=True)
class Tensor:
    """A row: ``within``: which pipeline stages have it; ``of``: what needs it."""

    name: str
    within: str
    of: str
    source: str


@cache
def table() -> dict[str, Any]:
    """Return checkpoint.toml."""
    return tomllib.loads(FILE.read_text("utf-8"))


@cache
def tensors() -> tuple[Tensor, ...]:
    return tuple(Tensor(row["name"], row["in"], row["of"], row["source"]) for row in table()["tensors"])


def key_problems(config: Mapping[str, Any], model_type: str, where: str) -> Iterator[TrtpipeError]:
    """Yield the keys that config.json lacks, and those of its closed parts that TensorRT-LLM does not know."""
    for row in table()["config"]:
        if row.get("needed") in ("always", model_type) and row["name"] not in config:
            yield ConfigError(
                f"the checkpoint's config.json has no `{row['name']}`", where=where, fix="export it again"
            )
    for part in CLOSED:
        if unknown := sorted((config.get(part) or {}).keys() - {row["name"] for row in table()[part]}):
            yield ConfigError(
                f"`{part}` has {', '.join(f'`{name}`' for name in unknown)}, and TensorRT-LLM refuses what it does not "
                "know there",
                where=where,
                fix="take it out, or export with what belongs to the target's version",
            )


def expected(plan: Plan, stage: int) -> Iterator[str]:
    """Yield the tensors that a rank's file of a pipeline stage must hold."""
    target, division = plan.target, plan.division
    last = target.pipeline_parallel - 1
    true = {"always"} | {
        what
        for what, holds in {
            "pre_quant_scale": target.weights == "w4a16_awq",
            "has_zero_point": target.weights == "w4a16_gptq",
            "attention bias": division.shape.biased_qkv,
            "8-bit KV cache": target.kv_dtype != "model",
        }.items()
        if holds
    }
    stages = {"every"} | ({"first"} if stage == 0 else set()) | ({"last"} if stage == last else set())
    for row in tensors():
        if row.within in stages and row.of in true:
            for layer in range(len(division.layers_of(stage))) if "{layer}" in row.name else (0,):
                for linear in table()["linears"] if "{linear}" in row.name else ("",):
                    yield row.name.format(layer=layer, linear=linear)


def tensor_problems(folder: Path, plan: Plan) -> Iterator[TrtpipeError]:
    """Yield what the rank files lack or hold of another format; only headers are read."""
    target = plan.target
    if target.weights not in FORMATS or plan.division.shape.model_type not in MODELS:
        return
    for stage in range(target.pipeline_parallel):
        needed = set(expected(plan, stage))
        for rank in range(stage * target.tensor_parallel, (stage + 1) * target.tensor_parallel):
            path = folder / f"rank{rank}.safetensors"
            if path.is_file() and path.stat().st_size:
                yield from _problems_of(path, rank, needed, target.weights)


def _problems_of(path: Path, rank: int, needed: set[str], weights: str) -> Iterator[TrtpipeError]:
    try:
        held = weight_files.names(path)
    except ConfigError as fault:
        yield fault
        return
    missing = sorted(name for name in needed - held if not _of_two(name, held))
    if missing:
        yield ConfigError(
            f"rank {rank} lacks {len(missing)} tensor(s) that its engine needs: {_first(missing)}",
            where=str(path),
            fix="trtllm-build would end with `Required but not provided tensors`: export it again",
        )
    if weights == "w4a16_gptq" and (other := sorted(name for name in held if name.endswith("prequant_scaling_factor"))):
        yield ConfigError(
            f"rank {rank} has input scales, which W4A16_GPTQ has not: {_first(other)}",
            where=str(path),
            fix="it is a W4A16_AWQ checkpoint: weights: w4a16_awq",
        )


def _of_two(name: str, held: set[str]) -> bool:
    return name.endswith(ONE_OF_TWO) and {
        name.replace(ONE_OF_TWO, f"{side}_cache_scaling_factor") for side in "kv"
    } <= held  # fmt: skip


def _first(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
