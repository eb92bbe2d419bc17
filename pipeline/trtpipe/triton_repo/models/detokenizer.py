"""Cuts a growing answer where its text can be cut, so that the chunks of a stream add up to the text of the whole.

A run is the shortest row of tokens whose text stays the same whatever follows. Nearly every token is a run of its own;
one that ends within a character waits for the next, which either goes on with the character or shows that it will
never come. So invalid bytes wait for one token at most. Each response holds whole runs, and ``TokenBytes.text`` of each
is the text of all, for any bytes.

Copies of this module run inside Triton's models: it needs nothing but the bytes of the tokens.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from token_bytes import TokenBytes

_UTF8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True)
class Run:
    """``text``: what the ids read, with special tokens written out: nobody is shown those, but they can end it."""

    ids: list[int]
    text: str


class Runs:
    """Takes one token after the other; the work for each does not grow with the answer."""

    def __init__(self, table: TokenBytes) -> None:
        self._table = table
        self._decoder = _UTF8("replace")
        self._begin()

    def add(self, token: int) -> list[Run]:
        """Take a token and return the runs that it ends: none, one or two."""
        ended = []
        piece = self._table.of(token)
        if piece and not self._goes_on(piece):
            ended = self.finish()
        self._ids.append(token)
        self._texts.append(self._decoder.decode(piece) if piece else self._table.written(token).decode())
        if not self._incomplete():
            ended.append(self._end())
        return ended

    def finish(self) -> list[Run]:
        """Return what still waits, with U+FFFD for a character that did not come to its end."""
        if not self._ids:
            return []
        self._texts.append(self._decoder.decode(b"", final=True))
        return [self._end()]

    def _goes_on(self, piece: bytes) -> bool:
        """True where ``piece`` begins with what an incomplete character waits for, and where none waits."""
        incomplete = self._incomplete()
        if not incomplete:
            return True
        try:
            _UTF8("strict").decode(incomplete + piece[:1])
        except UnicodeDecodeError:
            return False
        return True

    def _incomplete(self) -> bytes:
        """Return the bytes of the last character where more may follow: three at most."""
        return self._decoder.getstate()[0]

    def _end(self) -> Run:
        run = Run(self._ids, "".join(self._texts))
        self._begin()
        return run

    def _begin(self) -> None:
        self._ids: list[int] = []
        self._texts: list[str] = []
