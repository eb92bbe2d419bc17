"""Read the config with its target and policy: YAML, ``--set`` overrides, schema; errors with a position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from trtpipe.config import faults, starter, yaml
from trtpipe.config.policy import DriftPolicy
from trtpipe.config.schema import SAMPLE_MODEL, PipelineConfig
from trtpipe.config.source import Setting, Source, setting
from trtpipe.config.target import Target, TensorrtLlmTarget, VllmTarget
from trtpipe.errors import ConfigError, TrtpipeError, UsageFault, raise_all

NO_CONFIG = "`trtpipe init` writes a workspace with one; -c names one that lies elsewhere"


@dataclass(frozen=True)
class Workspace:
    """A config file read and checked, with its target and policy."""

    config_path: Path
    config: PipelineConfig
    target: VllmTarget | TensorrtLlmTarget
    policy: DriftPolicy

    @property
    def root(self) -> Path:
        """The folder that every path of the config is relative to."""
        return self.config_path.parent

    def resolve(self, path: str) -> Path:
        return (self.root / path).resolve()


def workspace(config_path: Path, overrides: tuple[str, ...] = ()) -> Workspace:
    """Read ``config_path`` and the files it names. ``overrides`` are ``path=value`` texts.

    An override whose path begins with ``target.`` or ``policy.`` goes to that file. Raises UsageFault for an
    override that fits nowhere, else ConfigError for the problems of all three files together.
    """
    config_path = config_path.resolve()
    settings = [setting(override) for override in overrides]
    source = Source.of(yaml.read(config_path, NO_CONFIG), "", settings)
    problems: list[TrtpipeError] = []
    config = _check(source, TypeAdapter(PipelineConfig), problems)
    target = _check(_named(source, "target", settings, problems), TypeAdapter(cast("Any", Target)), problems)
    policy = _check(_named(source, "policy", settings, problems), TypeAdapter(DriftPolicy), problems)
    raise_all(problems)
    return Workspace(config_path, config, target, policy)


@dataclass(frozen=True)
class TargetFile:
    """A target file read and checked on its own, without a config."""

    target: VllmTarget | TensorrtLlmTarget
    source: Source

    def where(self, key: str) -> str:
        """Return where a key of the target stands, or the override that gave it."""
        return self.source.where((key,))


def target_file(path: Path, overrides: tuple[str, ...] = ()) -> TargetFile:
    """Read one target file. ``overrides`` are ``target.key=value`` texts.

    Raises UsageFault for an override of anything else, and ConfigError for all problems of the file together.
    """
    settings = [setting(override) for override in overrides]
    for one in settings:
        if one.scope != "target":
            raise UsageFault(
                f"`{'.'.join(one.path)}` is no key of the target",
                where="--set",
                fix="override keys of the target only, as in --set target.kv_dtype=model",
            )
    problems: list[TrtpipeError] = []
    source = Source.of(yaml.read(path), "target", settings)
    target = _check(source, TypeAdapter(cast("Any", Target)), problems)
    raise_all(problems)
    return TargetFile(target, source)


def _named(config: Source, scope: str, settings: list[Setting], problems: list[TrtpipeError]) -> Source | None:
    """Read the file that the config names under ``scope``; None where that fails or the name is no text."""
    name = config.document.data.get(scope)
    try:
        if isinstance(name, str):
            path = (config.document.path.parent / name).resolve()
            return Source.of(yaml.read(path), scope, settings)
        if name is None and scope == "policy":
            of_sample = config.document.data.get("model") == SAMPLE_MODEL
            default = yaml.Document(Path("default policy"), {}, {})
            return Source.of(
                yaml.read(starter.source() / starter.SAMPLE_POLICY) if of_sample else default, scope, settings
            )
    except ConfigError as problem:
        problems.append(problem)
    return None


def _check(source: Source | None, adapter: TypeAdapter[Any], problems: list[TrtpipeError]) -> Any:
    """Return what the schema makes of the source; None after adding its problems to the list."""
    if source is None:
        return None
    try:
        return adapter.validate_python(source.document.data)
    except ValidationError as fault:
        problems += faults.told(source, adapter, fault)
    return None
