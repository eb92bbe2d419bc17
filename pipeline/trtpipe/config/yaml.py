"""A strict YAML reader on PyYAML: duplicate keys refused, positions kept, no surprises in scalars.

PyYAML follows YAML 1.1, where ``no`` is false, ``1e-5`` is text and ``0123`` is 83. Here scalars follow the
YAML 1.2 core schema (without ``.inf`` and ``.nan``); anchors, aliases and tags are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trtpipe.errors import ConfigError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Position:
    """One-based line and column, as editors count."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """The data of a YAML file and where each value stands."""

    path: Path
    data: Any
    positions: dict[KeyPath, Position]

    def where(self, key_path: KeyPath) -> str:
        """Return ``file:line:column`` of a value, or of its nearest enclosing mapping."""
        while key_path and key_path not in self.positions:
            key_path = key_path[:-1]
        position = self.positions.get(key_path, Position(1, 1))
        return f"{self.path}:{position.line}:{position.column}"


class _Core(yaml.SafeLoader):
    """SafeLoader with the scalars of the YAML 1.2 core schema only."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as in the base

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None or getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors, aliases and tags are not known here", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)


_Core.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Core.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Core.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile("^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"),
    list("-+0123456789"),
)
_Core.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Core.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Core.add_constructor("tag:yaml.org,2002:float", _construct_float)


def read(path: Path, missing: str = "check the path") -> Document:
    """Read a YAML file. Raises ConfigError with file, line and column. ``missing``: what to do without it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("the file does not exist", where=str(path), fix=near(path) or missing) from None
    except OSError as fault:
        raise ConfigError(
            f"the file can't be read: {fault.strerror}", where=str(path), fix="give a YAML file"
        ) from None
    except UnicodeDecodeError as fault:
        raise ConfigError(
            f"not UTF-8: byte {fault.object[fault.start]:02X} at offset {fault.start}",
            where=str(path),
            fix="save the file as UTF-8",
        ) from None
    return parse(text, path)


def parse(text: str, path: Path) -> Document:
    """Parse YAML text; ``path`` is only for messages."""
    positions: dict[KeyPath, Position] = {}
    try:
        loader = _Core(text)
        node = loader.get_single_node()
        if node is None:
            return Document(path, {}, {})
        _walk(node, (), positions, path)
        return Document(path, loader.construct_document(node), positions)
    except yaml.MarkedYAMLError as fault:
        raise ConfigError(
            f"not valid YAML: {', '.join(filter(None, (fault.context, fault.problem)))}",
            where=f"{path}:{_marked(fault.problem_mark)}",
            fix="correct that line",
        ) from None
    except yaml.reader.ReaderError as fault:
        raise ConfigError(f"not valid YAML: {fault.reason}", where=str(path), fix="remove that character") from None
    except (RecursionError, ValueError) as fault:  # thousands of brackets; an integer of thousands of digits
        raise ConfigError(f"not readable: {fault}", where=str(path), fix="correct the file") from None


def scalar(text: str) -> Any:
    """Read one value as YAML would: for ``--set path=value``."""
    return parse(text, Path("--set")).data if text else ""


def _walk(node: yaml.Node, key_path: KeyPath, positions: dict[KeyPath, Position], path: Path) -> None:
    positions.setdefault(key_path, _position(node.start_mark))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, Position] = {}
        for key, value in node.value:
            name, position = str(key.value), _position(key.start_mark)
            if key.tag != "tag:yaml.org,2002:str":
                raise ConfigError(
                    "a key is not text",
                    where=f"{path}:{position.line}:{position.column}",
                    fix="write a name there; in quotes if it looks like a number, true, false or null",
                )
            if name in seen:
                raise ConfigError(
                    f"the key `{name}` is given twice, first on line {seen[name].line}",
                    where=f"{path}:{position.line}:{position.column}",
                    fix="keep one of them",
                )
            seen[name] = positions[*key_path, name] = position
            _walk(value, (*key_path, name), positions, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*key_path, index), positions, path)


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _marked(mark: yaml.Mark | None) -> str:
    return f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"


def near(path: Path) -> str | None:
    """Return a question that names the file with the other of YAML's two endings, if it is there."""
    twin = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    return f"did you mean {twin}?" if twin.exists() else None
