"""What an answer is made of while it comes: texts, and on demand the tokens that the engine has chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trtpipe.core.token_bytes import TokenBytes
from trtpipe.errors import ToolFailed
from trtpipe.triton_repo.exchange import Piece


@dataclass(frozen=True)
class Token:
    """``text``: as it stands alone, U+FFFD for a part of a character. ``bytes``: None for a special token.

    ``log_prob``: a natural logarithm, see ``exchange.Piece``.
    """

    text: str
    bytes: bytes | None
    log_prob: float

    def document(self) -> dict[str, Any]:
        """Return it as in a chat completion; the engine does not tell what else it could have chosen."""
        spelled = None if self.bytes is None else list(self.bytes)
        return {"token": self.text, "logprob": self.log_prob, "bytes": spelled, "top_logprobs": []}


@dataclass(frozen=True)
class Said:
    """A new part of an answer. ``tokens``: None where nobody has asked for them.

    Tokens may come before their text: it waits for the end of a character, or for what could be a stop word.
    """

    text: str
    tokens: tuple[Token, ...] | None = None

    def __bool__(self) -> bool:
        return bool(self.text or self.tokens)


def join(parts: Iterable[Said]) -> Said:
    """Return the whole of an answer's parts."""
    parts = list(parts)
    tokens = [token for part in parts for token in part.tokens or ()]
    scored = any(part.tokens is not None for part in parts)
    return Said("".join(part.text for part in parts), tuple(tokens) if scored else None)


def read(piece: Piece, table: TokenBytes) -> Said:
    """Return what a response of the engine says. Raises ToolFailed where log probabilities have no tokens."""
    if piece.log_probs is None:
        return Said(piece.text)
    ids = piece.log_prob_ids
    if ids is None or len(ids) != len(piece.log_probs):
        raise ToolFailed(
            "the engine does not tell which tokens its log probabilities are of",
            where="the release",
            fix="package it again, if an earlier trtpipe has packaged it",
        )
    return Said(piece.text, tuple(_token(*each, table) for each in zip(ids, piece.log_probs, strict=True)))


def _token(token: int, log_prob: float, table: TokenBytes) -> Token:
    return Token(table.written_text([token]), table.of(token) or None, log_prob)
