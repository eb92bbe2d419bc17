"""Everything wrong with a config that shows without reading a model or a prompt: all of it, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.calibration import files
from trtpipe.config import load
from trtpipe.config.schema import SAMPLE_MODEL
from trtpipe.engines.trtllm.built import compare
from trtpipe.engines.trtllm.gpus import gpu_of
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.quantization.kinds import environments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtpipe.config.load import Reading, Workspace
    from trtpipe.config.source import Source

# Keys that name a folder or a file -> what is wanted there. The target, the policy and the prompts are read anyway.
FOLDERS = {
    ("model",): "give a folder with config.json, *.safetensors and tokenizer.json, or `sample`",
    ("quantization", "environment"): "give the folder of a Python environment",
    ("quantization", "checkpoint"): "give the folder of an AutoAWQ, GPTQ or ModelOpt checkpoint",
    ("serving", "triton_environment"): "give the folder of a Python environment with Triton",
}
FILES = {("prompts", "general_file"): "give a file of prompts, or leave it out for the built-in set"}


def validate(config: Path, overrides: tuple[str, ...]) -> Workspace:
    """Return the config. Raises all that is wrong with it, with its target and policy, and with what it names."""
    reading = load.read(config, overrides)
    raise_all([*reading.problems, *_named(reading), *_prompts(reading), *_quantizer(reading), *_target(reading)])
    return reading.workspace()


def _at(source: Source, path: tuple[str, ...]) -> Any:
    """Return a value as written; None where it is not."""
    node: Any = source.document.data
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _named(reading: Reading) -> Iterator[TrtpipeError]:
    for path, fix in (FOLDERS | FILES).items():
        name = _at(reading.source, path)
        if not isinstance(name, str) or (path, name) == (("model",), SAMPLE_MODEL):
            continue
        there, kind = reading.root / name, "folder" if path in FOLDERS else "file"
        if not (there.is_dir() if kind == "folder" else there.is_file()):
            yield ConfigError(
                f"`{'.'.join(path)}`: there is no {kind} {there}", where=reading.source.where(path), fix=fix
            )


def _prompts(reading: Reading) -> Iterator[TrtpipeError]:
    names = _at(reading.source, ("prompts", "files"))
    for number, name in enumerate(names if isinstance(names, list) else ()):
        if not isinstance(name, str):
            continue
        try:
            files.find([reading.root / name])
        except ConfigError as fault:
            for one in fault.each():
                where = reading.source.where(("prompts", "files", number))
                yield ConfigError(f"`prompts.files`: {one.what}: {one.where}", where=where, fix=one.fix)


def _quantizer(reading: Reading) -> Iterator[TrtpipeError]:
    """Yield what the quantizer needs and is not given."""
    kind, source = _at(reading.source, ("quantization", "kind")), reading.source
    if kind == "existing" and _at(source, ("quantization", "checkpoint")) is None:
        yield ConfigError(
            "`quantization.checkpoint` is missing, which kind existing takes over",
            where=source.where(("quantization", "kind")),
            fix=FOLDERS["quantization", "checkpoint"],
        )
    if kind in environments.TESTED and _at(source, ("quantization", "environment")) is None:
        try:
            environments.python_of(kind, None)
        except ConfigError as fault:
            yield ConfigError(fault.what, where=source.where(("quantization", "kind")), fix=fault.fix)


def _target(reading: Reading) -> Iterator[TrtpipeError]:
    """Yield the names in a TensorRT-LLM target that stand for nothing."""
    source = reading.target_source
    if source is None or _at(source, ("kind",)) != "tensorrt-llm":
        return
    gpu, accepted = _at(source, ("gpu",)), _at(source, ("accepted_changes",))
    if isinstance(gpu, str):
        try:
            gpu_of(gpu, source.where(("gpu",)))
        except ConfigError as fault:
            yield fault
    if isinstance(accepted, list):
        for name in compare.unknown_names([name for name in accepted if isinstance(name, str)]):
            yield ConfigError(
                f"accepted_changes names `{name}`, which is no argument whose effect an engine records",
                where=source.where(("accepted_changes", accepted.index(name))),
                fix="correct the name; arguments.toml has them all",
            )
