"""Read the config with its target and policy: YAML, ``--set`` overrides, schema; errors with a position."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from trtpipe.config import starter, yaml
from trtpipe.config.policy import DriftPolicy
from trtpipe.config.schema import SAMPLE_MODEL, PipelineConfig
from trtpipe.config.target import Target, TensorrtLlmTarget, VllmTarget
from trtpipe.errors import ConfigError, TrtpipeError, UsageFault, raise_all


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
    settings = [_setting(override) for override in overrides]
    source = _source(yaml.read(config_path), "", settings)
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
    source: _Source

    def where(self, key: str) -> str:
        """Return where a key of the target stands, or the override that gave it."""
        return self.source.where((key,))


def target_file(path: Path, overrides: tuple[str, ...] = ()) -> TargetFile:
    """Read one target file. ``overrides`` are ``target.key=value`` texts.

    Raises UsageFault for an override of anything else, and ConfigError for all problems of the file together.
    """
    settings = [_setting(override) for override in overrides]
    for setting in settings:
        if setting.scope != "target":
            raise UsageFault(
                f"`{'.'.join(setting.path)}` is no key of the target",
                where="--set",
                fix="override keys of the target only, as in --set target.kv_dtype=model",
            )
    problems: list[TrtpipeError] = []
    source = _source(yaml.read(path), "target", settings)
    target = _check(source, TypeAdapter(cast("Any", Target)), problems)
    raise_all(problems)
    return TargetFile(target, source)


@dataclass(frozen=True)
class _Setting:
    """One override: the file it goes to ("" is the config itself), the path in it and the value."""

    scope: str
    path: tuple[str, ...]
    value: Any


def _setting(override: str) -> _Setting:
    name, separator, value = override.partition("=")
    if not separator or not all(name.split(".")):
        raise UsageFault(
            f"not of the form path=value: {override}",
            where="--set",
            fix="for instance --set prompts.seed=1",
        )
    first, *rest = name.split(".")
    scope = first if rest and first in ("target", "policy") else ""
    return _Setting(scope, tuple(rest if scope else [first, *rest]), yaml.scalar(value))


@dataclass(frozen=True)
class _Source:
    """One file's document, its data changed by the overrides that go to it."""

    document: yaml.Document
    scope: str
    overridden: list[tuple[str, ...]]

    @property
    def tag(self) -> str | None:
        """The target's kind, which pydantic puts first into locations and the file does not have."""
        return self.document.data.get("kind") if self.scope == "target" else None

    def location(self, error: Any) -> yaml.KeyPath:
        location: yaml.KeyPath = error["loc"]
        if self.tag and location[:1] == (self.tag,):
            location = location[1:]
        if error["type"] in ("missing", "extra_forbidden"):
            return location
        node, depth = self.document.data, 0  # what follows the value's own place names a member of its type
        while depth < len(location) and _holds(node, location[depth]):
            node, depth = node[location[depth]], depth + 1
        return location[:depth]

    def where(self, location: yaml.KeyPath) -> str:
        path = tuple(map(str, location))
        for overridden in self.overridden:
            if path[: len(overridden)] == overridden:
                return f"--set {_dotted(self.scope, overridden)}"
        return self.document.where(location)


def _holds(node: Any, part: str | int) -> bool:
    if isinstance(node, dict):
        return part in node
    return isinstance(node, list) and isinstance(part, int) and part < len(node)


def _dotted(scope: str, path: tuple[str, ...]) -> str:
    return ".".join([scope, *path] if scope else path)


def _source(document: yaml.Document, scope: str, settings: list[_Setting]) -> _Source:
    if not isinstance(document.data, dict):
        raise ConfigError("the file must hold a mapping", where=document.where(()), fix="write `key: value` lines")
    own = [setting for setting in settings if setting.scope == scope]
    for setting in own:
        _assign(document.data, setting)
    return _Source(document, scope, [setting.path for setting in own])


def _assign(data: dict[str, Any], setting: _Setting) -> None:
    for name in setting.path[:-1]:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise UsageFault(
                f"`{name}` is not a section",
                where=f"--set {_dotted(setting.scope, setting.path)}",
                fix="check the path",
            )
    data[setting.path[-1]] = setting.value


def _named(config: _Source, scope: str, settings: list[_Setting], problems: list[TrtpipeError]) -> _Source | None:
    """Read the file that the config names under ``scope``; None where that fails or the name is no text."""
    name = config.document.data.get(scope)
    try:
        if isinstance(name, str):
            path = (config.document.path.parent / name).resolve()
            return _source(yaml.read(path), scope, settings)
        if name is None and scope == "policy":
            of_sample = config.document.data.get("model") == SAMPLE_MODEL
            default = yaml.Document(Path("default policy"), {}, {})
            return _source(
                yaml.read(starter.source() / starter.SAMPLE_POLICY) if of_sample else default, scope, settings
            )
    except ConfigError as problem:
        problems.append(problem)
    return None


def _check(source: _Source | None, adapter: TypeAdapter[Any], problems: list[TrtpipeError]) -> Any:
    """Return what the schema makes of the source; None after adding its problems to the list."""
    if source is None:
        return None
    try:
        return adapter.validate_python(source.document.data)
    except ValidationError as fault:
        errors: dict[yaml.KeyPath, list[Any]] = {}
        for error in fault.errors():
            errors.setdefault(source.location(error), []).append(error)
        problems += [_problem(source, adapter, location, found) for location, found in errors.items()]
    return None


def _problem(source: _Source, adapter: TypeAdapter[Any], location: yaml.KeyPath, errors: list[Any]) -> TrtpipeError:
    name, where = ".".join(map(str, location)), source.where(location)
    if errors[0]["type"] == "extra_forbidden":
        known = _known_keys(adapter, source.tag, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        fix = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return ConfigError(f"unknown key `{name}`", where=where, fix=fix)
    if errors[0]["type"] == "missing":
        return ConfigError(f"`{name}` is missing", where=where, fix=f"add `{location[-1]}:` there")
    if errors[0]["type"].startswith("union_tag"):
        kind = errors[0]["ctx"].get("tag")
        return _no_such_kind(source.where(("kind",)) if kind else where, kind)
    wanted = "; or ".join(error["msg"] for error in errors)
    return ConfigError(f"`{name or source.document.path.name}`: {wanted}", where=where, fix="correct the value")


def _no_such_kind(where: str, kind: str | None) -> ConfigError:
    known = [get_args(target.model_fields["kind"].annotation)[0] for target in (VllmTarget, TensorrtLlmTarget)]
    near = difflib.get_close_matches(kind or "", known, n=1)
    what = f"there is no engine kind `{kind}`" if kind else "the target does not say which engine: `kind` is missing"
    fix = f"did you mean `{near[0]}`?" if near else f"write `kind:` with one of {', '.join(known)}"
    return ConfigError(what, where=where, fix=fix)


def _known_keys(adapter: TypeAdapter[Any], tag: str | None, path: yaml.KeyPath) -> list[str]:
    schema = adapter.json_schema()
    node = _resolved({"$ref": schema["discriminator"]["mapping"][tag]} if tag else schema, schema)
    for part in path:
        node = _resolved(node["properties"][part], schema)
    return list(node["properties"])


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    found: dict[str, Any] = schema["$defs"][reference.rsplit("/", 1)[1]] if reference else node
    return found
