"""Who makes the TensorRT-LLM checkpoint of a plan, and the exact lines that do it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.chain.plan import OURS
from trtpipe.engines.trtllm.build import scripts
from trtpipe.engines.trtllm.build.scripts import CONVERTERS
from trtpipe.engines.trtllm.families import is_exported
from trtpipe.errors import ConfigError
from trtpipe.quantization.kinds.recognised import quantization_of, recognise

if TYPE_CHECKING:
    from trtpipe.chain.plan import Planned
    from trtpipe.config.target import TensorrtLlmTarget

SOURCE_TREE = "in TensorRT-LLM's source tree of the same version (/app/tensorrt_llm in its image)"
TEXTS = Path("calibration/texts")  # of a workspace: what holds prompts stays where prompts are
CALIBRATION_TEXTS, AWQ_TEXTS = 512, 32  # calib_size; quantize_by_modelopt.py cuts it for AWQ, with a line of its log
MAKERS = {"autoawq": "AutoAWQ", "gptq": "GPTQ"}


@dataclass(frozen=True)
class Line:
    """A command to give, and what it is for."""

    purpose: str
    words: list[str]


@dataclass(frozen=True)
class Config:
    """The config that an export reads. ``path``: None where there is none yet; ``settings``: those given."""

    path: Path | None
    settings: tuple[str, ...] = ()


def lines(planned: Planned, out: Path, config: Config) -> list[Line]:
    """Return what makes the checkpoint in ``out``. Raises ConfigError where nothing that is known here does."""
    target, model = planned.plan.target, planned.model
    layout = _layout(model)
    if target.weights == "w4a16_gptq":
        return _converted(planned, layout, out, config)
    if is_exported(planned.plan.division.shape.model_type, target):
        purpose = "the checkpoint: codes and scales as calibrated, one file a rank"
        return _exported(planned, layout, config, purpose, [*_division(target), "--out", str(out)])
    if layout is not None:
        raise _no_way(
            planned, f"only TensorRT-LLM's quantize.py makes one with {_wanted(target)}, of an unquantized model"
        )
    return _quantized(planned, out, config)


def _quantized(planned: Planned, out: Path, config: Config) -> list[Line]:
    """Return the way through upstream's quantizer, which is given the user's own texts."""
    target, folder = planned.plan.target, (_config_path(planned, config).parent / TEXTS).absolute()
    quantizing = scripts.quantize(target, planned.model, out, folder)
    purpose = f"the checkpoint, {SOURCE_TREE}, on a GPU"
    if not scripts.calibrates(target):
        return [Line(purpose, quantizing)]
    first = AWQ_TEXTS if "awq" in target.weights else CALIBRATION_TEXTS
    words = ["--format", "calibration-texts", "--out", str(folder)]
    return [
        *_exported(planned, None, config, "the texts to calibrate on", words),
        Line(f"{purpose}, calibrated on its first {first} texts, each cut at 512 tokens", quantizing),
    ]


def _layout(model: Path) -> str | None:
    found = quantization_of(model)
    if not found:
        return None
    return OURS if found.get("quant_method") == OURS else recognise(model).layout


def _wanted(target: TensorrtLlmTarget) -> str:
    return f"weights {target.weights} and kv_dtype {target.kv_dtype}"


def _converted(planned: Planned, layout: str | None, out: Path, config: Config) -> list[Line]:
    """Return the way through upstream's converter; what it would read wrongly becomes an AutoAWQ folder first."""
    target, shape = planned.plan.target, planned.plan.division.shape
    if shape.model_type not in CONVERTERS:
        raise _no_way(planned, f"TensorRT-LLM's converter of `{shape.model_type}` takes no AutoAWQ or GPTQ checkpoint")
    folder, made = planned.model, list[Line]()
    why = None if layout is None or layout == OURS else _misread(folder)
    if layout not in MAKERS or why is not None:
        folder = out.with_name(f"{out.name}-autoawq")
        purpose = f"the codes in AutoAWQ's layout{f': {why}' if why else ''}"
        made = _exported(planned, layout, config, purpose, ["--format", "autoawq", "--out", str(folder)])
    converting = scripts.convert(
        shape.model_type, folder, out, tensor_parallel=target.tensor_parallel,
        pipeline_parallel=target.pipeline_parallel, dtype=target.dtype, vocabulary=shape.vocabulary,
        fp8_kv_cache=target.kv_dtype == "fp8_e4m3",
    )  # fmt: skip
    maker = MAKERS[layout] if layout in MAKERS and not made else "AutoAWQ's layout"
    whole = "" if target.tensor_parallel == 1 or "--use_parallel_embedding" in converting else (
        "; the whole embedding on every rank, since its vocabulary does not divide"
    )  # fmt: skip
    return [*made, Line(f"{maker} to W4A16_GPTQ, {SOURCE_TREE}{whole}", converting)]


def _misread(model: Path) -> str | None:
    """Say why upstream's converter would read an AutoAWQ or GPTQ folder wrongly; None where it would not."""
    found, known = quantization_of(model), recognise(model)
    if known.layout == "autoawq":
        lacking = [key for key in ("group_size", "zero_point") if not found.get(key)]
        return f"convert_checkpoint.py needs {' and '.join(lacking)} in config.json" if lacking else None
    if not known.symmetric:
        return "convert_checkpoint.py drops the zero points of asymmetric GPTQ"
    return None if known.zero_offset else "convert_checkpoint.py reads the zero points of gptq_v2 wrongly"


def _exported(planned: Planned, layout: str | None, config: Config, purpose: str, words: list[str]) -> list[Line]:
    """Return the export with the user's config, overridden as it was here; before it, what makes one where none is."""
    lines, path = list[Line](), _config_path(planned, config)
    if config.path is None:
        purpose_of_it = f"a workspace: put your prompts into {path} before the next line, it has the sample's"
        lines.append(Line(purpose_of_it, ["trtpipe", "init", str(path.parent)]))
    own = _settings(planned, layout)
    given = [setting for setting in config.settings if setting.partition("=")[0] not in own]
    settings = [*given, *(f"{name}={value}" for name, value in own.items())]
    source = [str(planned.model)] if layout == OURS else []
    sets = [word for setting in settings for word in ("--set", setting)]
    return [*lines, Line(purpose, ["trtpipe", "export", *source, "-c", str(path), *sets, *words])]


def _config_path(planned: Planned, config: Config) -> Path:
    """Return the user's config; where there is none yet, that of the workspace which a line makes."""
    return config.path or Path(f"{planned.name}-{planned.target.stem}-workspace") / "trtpipe.yaml"


def _settings(planned: Planned, layout: str | None) -> dict[str, Any]:
    """Return what an export of this model needs otherwise than the config may say."""
    target = planned.plan.target
    if layout == OURS:
        return {}
    settings: dict[str, Any] = {"model": planned.named or planned.model}
    if layout is not None:
        settings = {"quantization.kind": "existing", "quantization.checkpoint": planned.model}
    elif target.weights == "w4a16_gptq":
        settings["quantization.symmetric"] = "false"
    return settings | {"quantization.group_size": target.group_size}


def _division(target: TensorrtLlmTarget) -> list[str]:
    words = [
        "--format", "tensorrt-llm", "--tensor-parallel", str(target.tensor_parallel),
        "--pipeline-parallel", str(target.pipeline_parallel), "--dtype", target.dtype,
        "--kv-cache", "fp8" if target.kv_dtype == "fp8_e4m3" else "model",
    ]  # fmt: skip
    return [*words, "--pad"] if target.pad_intermediate else words


def _no_way(planned: Planned, why: str) -> ConfigError:
    return ConfigError(
        f"no line for the checkpoint is known: {why}",
        where=str(planned.model),
        fix="make it with TensorRT-LLM's scripts and give its folder with --checkpoint; or start from the unquantized "
        "model",
    )
