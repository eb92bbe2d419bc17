"""What the command line of `trtllm-build` takes, from arguments.toml; anything outside it is refused."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from trtpipe.errors import ConfigError, TrtpipeError, raise_all

Kind = Literal["count", "choice", "flag", "switch", "plugin", "path", "paths", "text", "texts"]
Value = str | int | bool
FILE = Path(__file__).with_name("arguments.toml")


@dataclass(frozen=True)
class Argument:
    """One row. ``recorded``: the place in the engine's config.json that says what became of it."""

    name: str
    kind: Kind
    source: str
    default: Value | None = None
    values: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    recorded: str | None = None
    note: str | None = None

    def fault(self, value: Value) -> str | None:
        """Say why upstream's parser would not take the value; None where it would."""
        if self.kind == "count":
            good, wanted = type(value) is int and value >= 0, "a whole number"
        elif self.kind == "flag":
            good, wanted = value is True, "a bare flag: true, or left out"
        elif self.values:
            good, wanted = value in self.values, f"one of {', '.join(self.values)}"
        else:
            good, wanted = isinstance(value, str) and value != "", "a text"
        return None if good else f"`{value}`, and must be {wanted}"

    def words(self, value: Value) -> list[str]:
        return [f"--{self.name}"] if self.kind == "flag" else [f"--{self.name}", str(value)]


@cache
def grammar() -> dict[str, Argument]:
    """Return the rows by name, in upstream's order."""
    rows: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["argument"]
    listed = ("values", "aliases")
    arguments = [Argument(**row | {key: tuple(row[key]) for key in listed if key in row}) for row in rows]
    return {argument.name: argument for argument in arguments}


def command(values: Mapping[str, Value]) -> list[str]:
    """Return the words of the command in upstream's order. Raises ConfigError for all that its parser would refuse."""
    known = grammar()
    problems: list[TrtpipeError] = []
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(
                ConfigError(
                    f"trtllm-build of TensorRT-LLM 1.2.1 has no argument --{name}",
                    where=str(FILE),
                    fix=f"did you mean --{near[0]}?" if near else "leave it out",
                )
            )
        elif fault := known[name].fault(value):
            problems.append(ConfigError(f"--{name} is {fault}", where=known[name].source, fix="correct the value"))
    raise_all(problems)
    words = [known[name].words(values[name]) for name in known if name in values]
    return ["trtllm-build", *(word for part in words for word in part)]
