"""The bytes that each token stands for, read from the tokenizer's own decoder.

With this table the text of any ids is their bytes, one after the other, read as UTF-8; what is no UTF-8 becomes
U+FFFD as Unicode recommends (one for each maximal part of a character), in Python as in the decoders of ``tokenizers``.

This module stands alone (standard library, tokenizers), because copies of it run inside Triton's models.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tokenizers import Tokenizer

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
# Steps of a decoder that put pieces together, or take a space from the very beginning of a text only.
WITHIN_A_TEXT_WITHOUT_EFFECT = frozenset({"Fuse", "Strip"})


class DecoderError(ValueError):
    """The tokenizer's way to make text of tokens is none of those known here; the text says which it is."""


class TokenBytes:
    """``known[id]`` are the bytes of a token: none for a special token. Ids that the tokenizer lacks have no bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Read all tokens. Raises DecoderError."""
        steps = _steps(json.loads(tokenizer.to_str()).get("decoder"))
        decoded, decoded_first = _decoder(steps), _decoder_of_the_first(steps)
        added = tokenizer.get_added_tokens_decoder()
        self._tokenizer = tokenizer
        self._special = {token: entry.content.encode() for token, entry in added.items() if entry.special}
        self.known = [b""] * (max(tokenizer.get_vocab().values(), default=-1) + 1)
        self._first: dict[int, bytes] = {}  # the tokens that are other bytes at the beginning of a text
        for piece, token in tokenizer.get_vocab().items():
            if token not in self._special:
                self.known[token] = decoded(piece)
                if (first := decoded_first(piece)) != self.known[token]:
                    self._first[token] = first
        self._spelling = {piece: token for token, piece in enumerate(self.known) if piece}

    def of(self, token: int) -> bytes:
        return self.known[token] if 0 <= token < len(self.known) else b""

    def written(self, token: int) -> bytes:
        """Return the bytes of a token; those of its name where it is a special one."""
        return self._special.get(token) or self.of(token)

    def text(self, ids: Iterable[int]) -> str:
        """Return the text of ids as it reads after other text: a space at its beginning is kept."""
        return b"".join(map(self.of, ids)).decode("utf-8", "replace")

    def opening(self, ids: Sequence[int]) -> str:
        """Return the text of ids as a text of its own: without the space that the tokenizer puts in front of one."""
        pieces = list(map(self.of, ids))
        first = next((place for place, piece in enumerate(pieces) if piece), None)
        if first is not None:
            pieces[first] = self._first.get(ids[first], pieces[first])
        return b"".join(pieces).decode("utf-8", "replace")

    def written_text(self, ids: Iterable[int]) -> str:
        """Return the text of ids with the names of special tokens in it."""
        return b"".join(map(self.written, ids)).decode("utf-8", "replace")

    def spell(self, text: str) -> list[int]:
        """Return ids that are exactly ``text`` wherever they stand: those of a new line, else a token for each letter.

        The tokenizer itself promises this only at the beginning of a text, where many put a space in front.
        """
        for before in ("", "\n"):
            skipped = len(self._encode(before))
            ids = self._encode(before + text)[skipped:]
            if self.written_text(ids) == text:
                return ids
        return self.respell(text)

    def respell(self, text: str) -> list[int]:
        """Return one token that is ``text``, else one for each letter or each byte of it; none is a special one."""
        if (whole := self._spelling.get(text.encode())) is not None:
            return [whole]
        found: list[int | None] = []
        for character in text:
            whole = self._spelling.get(character.encode())
            found += (
                [whole] if whole is not None else [self._spelling.get(bytes([byte])) for byte in character.encode()]
            )
        # A character that no token and no bytes can spell never comes out of this model either.
        return [token for token in found if token is not None]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _decoder(steps: Sequence[dict[str, Any]]) -> Callable[[str], bytes]:
    """Return what makes bytes of the text of a token. Raises DecoderError."""
    kinds = {step["type"] for step in steps} - WITHIN_A_TEXT_WITHOUT_EFFECT
    if {"type": "Fuse"} not in steps:  # then Strip would take a space from every token
        kinds |= {"Strip"} & {step["type"] for step in steps}
    if kinds == {"ByteLevel"}:
        return _byte_level
    if kinds in ({"Replace", "ByteFallback"}, {"Metaspace"}, {"Metaspace", "ByteFallback"}):
        marks = [_mark(step) for step in steps if step["type"] in {"Replace", "Metaspace"}]
        return lambda piece: _marked(piece, marks, bytes_fall_back="ByteFallback" in kinds)
    raise DecoderError(
        f"the tokenizer's decoder is {' + '.join(step['type'] for step in steps) or 'missing'}; "
        "known are ByteLevel, Metaspace, and Replace with ByteFallback"
    )


def _decoder_of_the_first(steps: Sequence[dict[str, Any]]) -> Callable[[str], bytes]:
    """Return the same for a text's first token: Metaspace drops all its marks, Strip the spaces in its front."""
    decoded = _decoder(steps)
    for step in steps:
        if step["type"] == "Metaspace" and step["prepend_scheme"] != "never":
            return lambda piece: decoded(piece.replace(step["replacement"], ""))
        if step["type"] == "Strip" and step["content"] == " ":
            spaces = step["start"]
            return lambda piece: re.sub(rb"^ {0,%d}" % spaces, b"", decoded(piece))
    return decoded


def _steps(decoder: dict[str, Any] | None) -> Sequence[dict[str, Any]]:
    if decoder is None:
        return []
    if decoder["type"] != "Sequence":
        return [decoder]
    return [step for inner in decoder["decoders"] for step in _steps(inner)]


def _mark(step: dict[str, Any]) -> str:
    """Return the sign that a step turns into a space."""
    if step["type"] == "Metaspace":
        return str(step["replacement"])
    mark, content = step["pattern"].get("String"), step["content"]
    if mark is None or content != " ":
        raise DecoderError(f"the tokenizer's decoder replaces {step['pattern']} by {content!r}; known is a space")
    return str(mark)


def _marked(piece: str, marks: Sequence[str], *, bytes_fall_back: bool) -> bytes:
    if bytes_fall_back and (byte := BYTE_TOKEN.fullmatch(piece)):
        return bytes.fromhex(byte.group(1))
    for mark in marks:
        piece = piece.replace(mark, " ")
    return piece.encode()


def _byte_level(piece: str) -> bytes:
    """Undo GPT-2's alphabet; a token with any other letter in it stands for itself, as in ``tokenizers``."""
    values = [BYTE_OF_LETTER.get(letter) for letter in piece]
    return piece.encode() if None in values else bytes(value for value in values if value is not None)


def _letters() -> dict[str, int]:
    """Return GPT-2's letters: a printable Latin-1 byte is its own, the others follow from U+0100 on in their order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


BYTE_OF_LETTER = _letters()
