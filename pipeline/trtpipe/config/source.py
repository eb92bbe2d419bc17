"""One file of a config: its data, changed by the overrides that go to it, and where each value stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trtpipe.config import yaml
from trtpipe.errors import ConfigError, UsageFault


@dataclass(frozen=True)
class Setting:
    """One override: the file it goes to ("" is the config itself), the path in it and the value."""

    scope: str
    path: tuple[str, ...]
    value: Any


def setting(override: str) -> Setting:
    """Parse ``path=value``. A path that begins with ``target.`` or ``policy.`` goes to that file."""
    name, separator, value = override.partition("=")
    if not separator or not all(name.split(".")):
        raise UsageFault(
            f"not of the form path=value: {override}",
            where="--set",
            fix="for instance --set prompts.seed=1",
        )
    first, *rest = name.split(".")
    scope = first if rest and first in ("target", "policy") else ""
    return Setting(scope, tuple(rest if scope else [first, *rest]), yaml.scalar(value))


@dataclass(frozen=True)
class Source:
    """One file's document, its data changed by the overrides that go to it."""

    document: yaml.Document
    scope: str
    overridden: list[tuple[str, ...]]

    @classmethod
    def of(cls, document: yaml.Document, scope: str, settings: list[Setting]) -> Source:
        """Apply the overrides. Raises ConfigError for a file without keys, UsageFault for a path that leads nowhere."""
        if not isinstance(document.data, dict):
            raise ConfigError("the file must hold a mapping", where=document.where(()), fix="write `key: value` lines")
        own = [setting for setting in settings if setting.scope == scope]
        for setting in own:
            _assign(document.data, setting)
        return cls(document, scope, [setting.path for setting in own])

    def where(self, location: yaml.KeyPath) -> str:
        """Return where a value stands, or the override that gave it."""
        path = tuple(map(str, location))
        for overridden in self.overridden:
            if path[: len(overridden)] == overridden:
                return f"--set {_dotted(self.scope, overridden)}"
        return self.document.where(location)


def _dotted(scope: str, path: tuple[str, ...]) -> str:
    return ".".join([scope, *path] if scope else path)


def _assign(data: dict[str, Any], setting: Setting) -> None:
    for name in setting.path[:-1]:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise UsageFault(
                f"`{name}` is not a section",
                where=f"--set {_dotted(setting.scope, setting.path)}",
                fix="check the path",
            )
    data[setting.path[-1]] = setting.value
