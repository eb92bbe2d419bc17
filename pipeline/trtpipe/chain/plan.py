"""The plan of a TensorRT-LLM engine from files: model folder, target, length profile. No weight is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtpipe.config.load import TargetFile, target_file
from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.core import model_folder
from trtpipe.engines.trtllm import lengths as log_lengths
from trtpipe.engines.trtllm import plan as engine_plan
from trtpipe.engines.trtllm.build.scripts import CONVERTERS, calibrates, has_fp8_kv_cache, scripts
from trtpipe.engines.trtllm.capability import KV_WORDS, QUANT_ALGO
from trtpipe.engines.trtllm.families import is_exported
from trtpipe.engines.trtllm.findings import Finding
from trtpipe.engines.trtllm.format_checks import Quantized
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.rotary import rotary_of
from trtpipe.quantization.exports.trtllm_config import SCALINGS
from trtpipe.quantization.kinds.recognised import quantization_of, recognise

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.plan import Plan

# Layout of a quantized folder -> the format that an engine of it has. AutoAWQ and GPTQ have zero points and no input
# scales, which is TensorRT-LLM's GPTQ layer (a maintainer in its issue 2803).
WEIGHTS_OF_LAYOUT = {"autoawq": "w4a16_gptq", "gptq": "w4a16_gptq", "modelopt": "w4a16_awq"}
OURS = "compressed-tensors"


@dataclass(frozen=True)
class Planned:
    """A plan and the files that it is of. ``named``: what a config calls the model where that is no folder."""

    plan: Plan
    model: Path
    target: Path
    named: str | None = None

    @property
    def name(self) -> str:
        """What files that are made of it are called after."""
        return self.named or self.model.name

    def document(self) -> dict[str, Any]:
        return {"model_folder": str(self.model), "target_file": str(self.target), **self.plan.document()}


def plan(
    model: Path, target: Path, overrides: tuple[str, ...], profile: Path | None, *, named: str | None = None
) -> Planned:
    """Plan. Raises ConfigError for a file that is wrong; what the files say together is in the plan's findings."""
    read = target_file(target, overrides)
    if not isinstance(read.target, TensorrtLlmTarget):
        raise ConfigError(
            "a plan is of a TensorRT-LLM engine, and this target is of another kind",
            where=read.where("kind"),
            fix="give a target of kind tensorrt-llm, such as engines/a100x8.yaml",
        )
    config = model_folder.config_of(model)
    if "model_type" not in config and {"architecture", "mapping"} <= config.keys():
        raise ConfigError(
            "this is a TensorRT-LLM checkpoint, and a plan is of the model that it was made from",
            where=str(model / "config.json"),
            fix="give that model's folder (config.json and tokenizer do), and this one to `trtpipe build-engine` as "
            "--checkpoint",
        )
    quantized, unknown = _quantized(model)
    made = engine_plan.make(
        config,
        read.target,
        where=str(model / "config.json"),
        gpu_where=read.where("gpu"),
        quantized=quantized,
        lengths=None if profile is None else log_lengths.read(profile),
        more=(
            *unknown,
            *_tokenizer(model, config),
            *_rotary(model, config),
            *_route(config, read.target, quantized),
            *_converter(config, read.target),
        ),
    )
    placed = tuple(replace(finding, where=_place(finding.where, read)) for finding in made.findings)
    return Planned(replace(made, findings=placed), model, target, named)


def _place(where: str, read: TargetFile) -> str:
    """Return file, line and column too where a finding is about keys of the target."""
    keys = where.split(", ")
    known = [key for key in keys if key in TensorrtLlmTarget.model_fields]
    return f"{read.where(known[0])} ({where})" if known else where


def _quantized(model: Path) -> tuple[Quantized | None, tuple[Finding, ...]]:
    """Return what the folder is already, or the refusal of a layout that no engine here is made of."""
    found = quantization_of(model)
    if not found:
        return None, ()
    if found.get("quant_method") == OURS and found.get("format") == "pack-quantized":
        (group,) = found["config_groups"].values()
        scheme = group["weights"]
        weights = "w4a16_awq" if scheme["symmetric"] else "w4a16_gptq"
        return Quantized(weights, "a checkpoint of this program", int(scheme["group_size"])), ()
    try:
        known = recognise(model)
    except ConfigError as fault:
        return None, (Finding("refused", fault.what, str(fault.where), fix=fault.fix),)
    return Quantized(WEIGHTS_OF_LAYOUT[known.layout], known.words, known.group_size), ()


def _tokenizer(model: Path, config: dict[str, Any]) -> tuple[Finding, ...]:
    path = model / "tokenizer.json"
    if not path.is_file():
        return (Finding("note", "no tokenizer.json: its ids were not compared with the vocabulary", str(model)),)
    highest, vocabulary = model_folder.highest_token_id(path), config.get("vocab_size")
    if not isinstance(vocabulary, int) or highest < vocabulary:
        return ()
    return (
        Finding(
            "refused",
            f"the tokenizer's ids go up to {highest}, the vocabulary has {vocabulary}",
            str(path),
            why="a prompt with an id beyond has no embedding; the engine reads whatever lies there",
            fix="use the tokenizer that belongs to the model",
        ),
    )


def _rotary(model: Path, config: dict[str, Any]) -> tuple[Finding, ...]:
    _, scaling = rotary_of(config)
    if scaling is None or scaling["rope_type"] in SCALINGS:
        return ()
    return (
        Finding(
            "refused",
            f"the engine has no rotary scaling `{scaling['rope_type']}` for this model",
            f"{model / 'config.json'} rope_scaling",
            why=f"known: {', '.join(SCALINGS)}",
            fix="take it out: without scaling the context is max_position_embeddings",
            source="T:tensorrt_llm/layers/attention.py",
        ),
    )


def _route(config: dict[str, Any], target: TensorrtLlmTarget, quantized: Quantized | None) -> tuple[Finding, ...]:
    """Say who makes the engine's checkpoint where `trtpipe export` does not."""
    if quantized is not None or target.weights == "w4a16_gptq" or is_exported(str(config.get("model_type")), target):
        return ()
    return (
        Finding(
            "note",
            f"`trtpipe export` writes no {QUANT_ALGO[target.weights]} checkpoint with {KV_WORDS[target.kv_dtype]} KV "
            "cache of this model",
            "weights, kv_dtype",
            cost="by itself quantize.py calibrates on news articles from the network: `trtpipe build-engine --dry-run` "
            "gives it the texts of your calibration set"
            if calibrates(target)
            else None,
            fix="TensorRT-LLM's own scripts do, on a host that has it: convert_checkpoint.py for 16-bit weights, "
            "quantize.py for the others",
        ),
    )


def _converter(config: dict[str, Any], target: TensorrtLlmTarget) -> tuple[Finding, ...]:
    """Refuse what upstream's converter, the only maker of W4A16_GPTQ checkpoints, has no option for."""
    model_type = config.get("model_type")
    if target.weights != "w4a16_gptq" or target.kv_dtype != "fp8_e4m3" or model_type not in CONVERTERS:
        return ()
    if has_fp8_kv_cache(model_type):
        return ()
    return (
        Finding(
            "refused",
            f"TensorRT-LLM's converter of `{model_type}` has no FP8 KV cache",
            "kv_dtype, weights",
            why="W4A16_GPTQ checkpoints are made by its convert_checkpoint.py only",
            fix="kv_dtype: model; or weights: w4a16_awq of the unquantized model, with calibrated scales",
            source=scripts()[CONVERTERS[model_type]].name,
        ),
    )
