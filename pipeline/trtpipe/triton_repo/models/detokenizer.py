"""From token ids to text, so that the chunks of a stream add up to the text of the whole answer.

The ids are cut into runs: the shortest run whose text does not end in the middle of a character, then the next.
The text of an answer is the texts of its runs, one after the other. The engine sends only whole runs, so it makes
no difference whether an answer is decoded in one response or in many, for any tokenizer and also for bytes that
are no valid UTF-8.

A copy of this module runs inside two of Triton's models: it needs nothing but a tokenizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REPLACEMENT = "\ufffd"
# A character has at most four bytes in UTF-8, so four failed ones are no beginning of any.
LONGEST_CHARACTER_BYTES = 4


class Tokenizer(Protocol):
    """What is needed of a tokenizer; ``chat.ChatTokenizer`` has it."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class Detokenizer:
    """Decodes runs of ids as they read in the middle of a text: a leading space is kept."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # Decoders strip the space in front of the first token, so every run gets a token in front of it.
        self._anchor = tokenizer.encode("a")
        self._anchor_length = len(tokenizer.decode(self._anchor))

    def decode(self, run: Sequence[int]) -> str:
        """Return the text of one run; special tokens have none."""
        return self._tokenizer.decode([*self._anchor, *run])[self._anchor_length :]

    def text(self, ids: Iterable[int]) -> str:
        """Return the text of an answer, or of whole runs of it."""
        texts = []
        run: list[int] = []
        for token in ids:
            run.append(token)
            text = self.decode(run)
            if is_whole(text):
                texts.append(text)
                run = []
        return "".join([*texts, self.decode(run)])


def is_whole(text: str) -> bool:
    """True where ``text`` does not end with a character whose last bytes may still come."""
    return not text.endswith(REPLACEMENT) or text.endswith(REPLACEMENT * LONGEST_CHARACTER_BYTES)
