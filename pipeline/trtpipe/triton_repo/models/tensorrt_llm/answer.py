"""What of an answer may be sent so far: whole characters, and nothing that belongs to a stop word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from detokenizer import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat import ChatTokenizer
    from detokenizer import Detokenizer


@dataclass
class _Run:
    ids: list[int]
    text: str


class Answer:
    """Holds back the ids that can't be sent yet. ``stopped``: a stop word has appeared, nothing more follows."""

    def __init__(self, tokenizer: ChatTokenizer, detokenizer: Detokenizer, stop_words: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = detokenizer
        self._stop_words = stop_words
        self._open: list[int] = []
        self._held: list[_Run] = []
        self.stopped = False

    def add(self, ids: Sequence[int]) -> list[int]:
        """Take new ids and return those that may be sent now."""
        for token in ids:
            self._open.append(token)
            text = self._detokenizer.decode(self._open)
            if is_whole(text):
                self._held.append(_Run(self._open, text))
                self._open = []
                if self._find_stop_word():
                    return self._release_all()
        return self._release(self._safe_length())

    def finish(self) -> list[int]:
        """Return the ids still held back: the answer has ended."""
        if self._open:
            self._held.append(_Run(self._open, self._detokenizer.decode(self._open)))
            self._open = []
            self._find_stop_word()
        return self._release_all()

    def _find_stop_word(self) -> bool:
        """Cut the held runs in front of the first stop word in them.

        Where it begins inside a run, the characters in front of it are encoded anew.
        """
        text = self._text()
        starts = [start for word in self._stop_words if (start := text.find(word)) >= 0]
        if not starts:
            return False
        kept = self._take(min(starts))
        rest = text[len("".join(run.text for run in kept)) : min(starts)]
        self._held = [*kept, _Run(self._tokenizer.encode(rest), rest)] if rest else kept
        self._open = []
        self.stopped = True
        return True

    def _safe_length(self) -> int:
        """Return how many held characters can't be the beginning of a stop word."""
        text = self._text()
        longest = max((len(word) for word in self._stop_words), default=1)
        for start in range(max(0, len(text) - longest + 1), len(text)):
            if any(word.startswith(text[start:]) for word in self._stop_words):
                return start
        return len(text)

    def _text(self) -> str:
        return "".join(run.text for run in self._held)

    def _take(self, length: int) -> list[_Run]:
        """Return the leading runs that lie whole within the first ``length`` characters."""
        taken: list[_Run] = []
        end = 0
        for run in self._held:
            end += len(run.text)
            if end > length:
                break
            taken.append(run)
        return taken

    def _release(self, length: int) -> list[int]:
        released = self._take(length)
        self._held = self._held[len(released) :]
        return [token for run in released for token in run.ids]

    def _release_all(self) -> list[int]:
        return self._release(len(self._text()))
