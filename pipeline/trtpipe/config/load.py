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


@dataclass(frozen=True)
class Reading:
    """A config with its target and policy as far as they could be read; ``problems``: what is wrong with them.

    ``source``, ``target_source``: their data, also where it is not what the schema wants.
    """

    source: Source
    target_source: Source | None
    config: PipelineConfig | None
    target: VllmTarget | TensorrtLlmTarget | None
    policy: DriftPolicy | None
    problems: list[TrtpipeError]

    @property
    def root(self) -> Path:
        """The folder that every path of the config is relative to."""
        return self.source.document.path.parent

    def workspace(self) -> Workspace:
        """Return what was read. Raises all problems together."""
        raise_all(self.problems)
        assert self.config and self.target and self.policy  # noqa: S101, PT018 - what is None has a problem
        return Workspace(self.source.document.path, self.config, self.target, self.policy)


def workspace(config_path: Path, overrides: tuple[str, ...] = ()) -> Workspace:
    """Read ``config_path`` and the files it names. ``overrides`` are ``path=value`` texts.

    An override whose path begins with ``target.`` or ``policy.`` goes to that file. Raises UsageFault for an
    override that fits nowhere, else ConfigError for the problems of all three files together.
    """
    return read(config_path, overrides).workspace()


def read(config_path: Path, overrides: tuple[str, ...]) -> Reading:
    """Read the same and keep the problems. Raises only what keeps the config itself from being read."""
    settings = [setting(override) for override in overrides]
    source = Source.of(yaml.read(config_path.resolve(), NO_CONFIG), "", settings)
    problems: list[TrtpipeError] = []
    config = _check(source, TypeAdapter(PipelineConfig), problems)
    target_source = _named(source, "target", settings, problems)
    target = _check(target_source, TypeAdapter(cast("Any", Target)), problems)
    policy = _check(_named(source, "policy", settings, problems), TypeAdapter(DriftPolicy), problems)
    return Reading(source, target_source, config, target, policy, problems)


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
            if path.exists():
                return Source.of(yaml.read(path), scope, settings)
            fix = yaml.near(path) or f"give the file's path, relative to {config.document.path.parent}"
            problems.append(ConfigError(f"`{scope}`: there is no {path}", where=config.where((scope,)), fix=fix))
        elif name is None and scope == "policy":
            if config.document.data.get("model") == SAMPLE_MODEL:
                return Source.of(yaml.read(starter.source() / starter.SAMPLE_POLICY), scope, settings)
            return Source.of(yaml.Document(Path("default policy"), {}, {}), scope, settings)
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
