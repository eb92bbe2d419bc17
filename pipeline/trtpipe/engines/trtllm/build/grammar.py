"""What the command lines of TensorRT-LLM's programs take, from tables; anything outside them is refused."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from trtpipe.errors import ConfigError, TrtpipeError, raise_all

Kind = Literal["count", "number", "choice", "flag", "switch", "plugin", "path", "paths", "text", "texts"]
Value = str | int | bool
FILE = Path(__file__).with_name("arguments.toml")
LISTED = ("values", "aliases")


@dataclass(frozen=True)
class Argument:
    """One row. ``recorded``: the place in the engine's config.json that says what became of it."""

    name: str
    kind: Kind
    source: str
    default: Value | float | None = None
    values: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    recorded: str | None = None
    note: str | None = None

    def fault(self, value: Value | float) -> str | None:
        """Say why upstream's parser would not take the value; None where it would."""
        if self.kind == "count":
            good, wanted = type(value) is int and value >= 0, "a whole number"
        elif self.kind == "number":
            good, wanted = type(value) in (int, float), "a number"
        elif self.kind == "flag":
            good, wanted = value is True, "a bare flag: true, or left out"
        elif self.values:
            good, wanted = value in self.values, f"one of {', '.join(self.values)}"
        else:
            good, wanted = isinstance(value, str) and value != "", "a text"
        return None if good else f"`{value}`, and must be {wanted}"

    def words(self, value: Value) -> list[str]:
        return [f"--{self.name}"] if self.kind == "flag" else [f"--{self.name}", str(value)]


@dataclass(frozen=True)
class Program:
    """A program of TensorRT-LLM 1.2.1. ``words``: what starts it; ``arguments``: by name, in upstream's order."""

    name: str
    words: tuple[str, ...]
    arguments: Mapping[str, Argument]
    file: Path

    def command(self, values: Mapping[str, Value]) -> list[str]:
        """Return the words of a command in upstream's order.

        Raises ConfigError for all that the program's parser would refuse.
        """
        known = self.arguments
        problems: list[TrtpipeError] = []
        for name, value in values.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                problems.append(
                    ConfigError(
                        f"{self.name} of TensorRT-LLM 1.2.1 has no argument --{name}",
                        where=str(self.file),
                        fix=f"did you mean --{near[0]}?" if near else "leave it out",
                    )
                )
            elif fault := known[name].fault(value):
                problems.append(ConfigError(f"--{name} is {fault}", where=known[name].source, fix="correct the value"))
        raise_all(problems)
        words = [known[name].words(values[name]) for name in known if name in values]
        return [*self.words, *(word for part in words for word in part)]


def argument(row: dict[str, Any]) -> Argument:
    return Argument(**row | {key: tuple(row[key]) for key in LISTED if key in row})


@cache
def grammar() -> dict[str, Argument]:
    """Return the rows of `trtllm-build` by name, in upstream's order."""
    rows: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["argument"]
    return {row["name"]: argument(row) for row in rows}


def command(values: Mapping[str, Value]) -> list[str]:
    """Return the words of a `trtllm-build` command. Raises ConfigError for all that its parser would refuse."""
    return Program("trtllm-build", ("trtllm-build",), grammar(), FILE).command(values)
