"""A ``config.pbtxt`` as it stands on disk: its message, and the line of what is said about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import pbtxt

COMMENT = re.compile(r"#.*")
IN_QUOTES = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class Source:
    """``config``: with stand-ins for what placeholders leave open, such as data type 0. ``open``: lines with one."""

    path: Path
    lines: list[str]
    config: mc.ModelConfig
    open: frozenset[int]

    def at(self, *words: str, last: bool = False) -> str:
        """Return file and line of the first (or last) line that has one of ``words`` in quotes or as its key."""
        for word in words:
            pattern = re.compile(rf'"{re.escape(word)}"|^\s*{re.escape(word)}\b')
            found = [number for number, line in enumerate(self.lines, 1) if pattern.search(COMMENT.sub("", line))]
            if found:
                return f"{self.path}:{found[-1 if last else 0]}"
        return f"{self.path}:1"

    def is_open(self, key: str) -> bool:
        """True where a placeholder stands for the value of a field."""
        return any(re.match(rf"\s*{key}\b", self.lines[number - 1]) for number in self.open)


def read(path: Path) -> tuple[Source | None, list[TrtpipeError]]:
    """Read a config with all its placeholders as problems; None where the rest can't be parsed either."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        return None, [ConfigError(f"can't be read: {fault}", where=str(path), fix="give a text file in UTF-8")]
    problems: list[TrtpipeError] = []
    closed = []
    for number, line in enumerate(lines, 1):
        bare = COMMENT.sub("", line)
        problems += [_left(path, number, bare, found.group()) for found in pbtxt.PLACEHOLDER.finditer(bare)]
        closed.append(_stand_in(bare))
    opened = frozenset(
        number for number, line in enumerate(lines, 1) if pbtxt.PLACEHOLDER.search(COMMENT.sub("", line))
    )
    try:
        config = pbtxt.parse("\n".join(closed), str(path))
    except ConfigError as fault:
        return None, [*problems, fault]
    return Source(path, lines, config, opened), problems


def _left(path: Path, number: int, line: str, placeholder: str) -> ConfigError:
    quoted = any(placeholder in text for text in IN_QUOTES.findall(line))
    meaning = "read as the value, or replaced by a default unseen" if quoted else "Triton can't parse the file"
    return ConfigError(
        f"placeholder left: {placeholder} ({meaning})",
        where=f"{path}:{number}",
        fix="give the value; where none is wanted, an empty text or no such key",
    )


def _stand_in(line: str) -> str:
    """Return a line that can be parsed: placeholders in texts stay, others become a value of the field's kind."""
    pieces = re.split(r'("[^"]*")', line)
    value = "TYPE_INVALID" if "data_type" in line else "false" if "decoupled" in line else "1"
    return "".join(piece if piece.startswith('"') else pbtxt.PLACEHOLDER.sub(value, piece) for piece in pieces)
