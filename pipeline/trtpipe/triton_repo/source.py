"""A ``config.pbtxt`` as it stands on disk: its message, and the line of what is said about it.

protobuf's ``text_format`` parses it, but keeps no positions and takes no placeholders: here the file is cut into texts
in quotes, comments and the rest first. So each placeholder is known by its place, and lines can be named afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import pbtxt

PIECE = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<comment>\#[^\n]*)|(?P<rest>[^"'\#]+|["'])""", re.VERBOSE
)
FIELD_BEFORE = re.compile(r"(\w+)\s*:?\s*\[?\s*$")
FIELD_LENGTH_MAX = 200
# What can be parsed in place of a placeholder, where a number can't.
STAND_INS = {"data_type": "TYPE_INVALID", "decoupled": "false"}


@dataclass(frozen=True)
class Source:
    """``config``: with stand-ins for what placeholders leave open, such as data type 0. ``open``: fields with one.

    ``lines``: without comments. Placeholders in the values of ``parameters`` stay: their readers decide what they mean.
    """

    path: Path
    lines: list[str]
    config: mc.ModelConfig
    open: frozenset[str]

    @property
    def model(self) -> str:
        """The model's name; its folder has it where the config says none."""
        return self.config.name or self.path.parent.name

    def at(self, *words: str, last: bool = False) -> str:
        """Return file and line of the first (or last) line that has one of ``words`` in quotes or as its key."""
        for word in words:
            found = self._matching(rf"([\"']){re.escape(word)}\1|^\s*{re.escape(word)}\b")
            if found:
                return f"{self.path}:{found[-1 if last else 0]}"
        return f"{self.path}:1"

    def at_parameter(self, name: str) -> str:
        """Return file and line of a parameter: a tensor may have the same name."""
        found = self._matching(rf"\bkey\s*:\s*([\"']){re.escape(name)}\1")
        return f"{self.path}:{found[0] if found else 1}"

    def at_number(self, field: str, number: int) -> str:
        """Return file and line of a field with that number: others may have the field's name."""
        found = self._matching(rf"\b{field}\s*:\s*{number}\b")
        return f"{self.path}:{found[0]}" if found else self.at(field)

    def is_open(self, key: str) -> bool:
        """True where a placeholder stands for the value of a field."""
        return key in self.open

    def _matching(self, pattern: str) -> list[int]:
        return [number for number, line in enumerate(self.lines, 1) if re.search(pattern, line)]


def read(path: Path) -> tuple[Source | None, list[TrtpipeError]]:
    """Read a config with its placeholders outside of parameters as problems; None where the rest can't be parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        return None, [ConfigError(f"can't be read: {fault}", where=str(path), fix="give a text file in UTF-8")]
    problems: list[TrtpipeError] = []
    opened: set[str] = set()
    closed = ""
    for piece in PIECE.finditer(text):
        kept = "" if piece["comment"] else piece.group()
        for found in pbtxt.PLACEHOLDER.finditer(kept):
            field = _field(closed + kept[: found.start()] if piece["rest"] else closed)
            if field == "string_value":
                continue
            line = text.count("\n", 0, piece.start() + found.start()) + 1
            meaning = "read as the value" if piece["text"] else "Triton can't parse the file"
            problem = f"placeholder left: {found.group()} ({meaning})"
            problems.append(ConfigError(problem, where=f"{path}:{line}", fix="give the value"))
            opened.add(field)
        closed += _closed(closed, kept) if piece["rest"] else kept
    try:
        config = pbtxt.parse(closed, str(path))
    except ConfigError as fault:
        return None, [*problems, fault]
    return Source(path, closed.split("\n"), config, frozenset(opened)), problems


def _field(before: str) -> str:
    """Return the name of the field whose value comes next."""
    found = FIELD_BEFORE.search(before[-FIELD_LENGTH_MAX:])
    return found[1] if found else ""


def _closed(before: str, rest: str) -> str:
    """Return what stands outside of quotes with a value of the field's kind for each placeholder."""
    return pbtxt.PLACEHOLDER.sub(lambda found: STAND_INS.get(_field(before + rest[: found.start()]), "1"), rest)
