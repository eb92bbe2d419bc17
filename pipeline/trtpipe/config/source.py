"""One file of a config: its data, changed by the overrides that go to it, and where each value stands."""

from __future__ import annotations

import json
import shlex
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
        overridden = self.overriding(location)
        return self.document.where(location) if overridden is None else f"--set {dotted(self.scope, overridden)}"

    def overriding(self, location: yaml.KeyPath) -> tuple[str, ...] | None:
        """Return the path of the override that gave a value; None where it stands in the file."""
        path = tuple(map(str, location))
        return next((one for one in self.overridden if path[: len(one)] == one), None)


def dotted(scope: str, path: tuple[str, ...]) -> str:
    """Return a path as ``--set`` takes it."""
    return ".".join([scope, *path] if scope else path)


def _assign(data: dict[str, Any], setting: Setting) -> None:
    for depth, name in enumerate(setting.path[:-1], start=1):
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            whole = f"{dotted(setting.scope, setting.path[:depth])}={json.dumps([setting.value])}"
            raise UsageFault(
                f"`{name}` is not a section",
                where=f"--set {dotted(setting.scope, setting.path)}",
                fix=f"a list is given whole, as in --set {shlex.quote(whole)}"
                if isinstance(data, list)
                else "check the path",
            )
    data[setting.path[-1]] = setting.value
