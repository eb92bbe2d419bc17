"""What of an answer may be sent so far: whole characters, and nothing that belongs to a stop word.

Copies of this module run inside two of Triton's models: the local engine, so that what leaves it can be read as it
stands, and the BLS model, because TensorRT-LLM sends tokens as they come and knows stop words by their ids only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokenizer import Run, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from token_bytes import TokenBytes


class Answer:
    """Holds back the ids that can't be sent yet. ``stopped``: a stop word has appeared, nothing more follows.

    Stop words are looked for in the text, however it is cut into tokens, and only in what comes after the first
    ``tokens_min`` tokens. ``opens_text``: the answer is a text of its own, as that to a conversation is, and not what
    follows a prompt: then the space is dropped that many tokenizers put in front of a text, as their own decoders do.
    """

    def __init__(
        self, table: TokenBytes, stop_words: Sequence[str], tokens_min: int = 0, *, opens_text: bool = False
    ) -> None:
        self._table = table
        self._runs = Runs(table)
        self._stop_words = stop_words
        self._longest = max(map(len, stop_words), default=1)
        self._tokens_min = tokens_min
        self._opens_text = opens_text
        self._tokens = 0
        self._released: list[int] = []
        self._held: list[Run] = []
        self._text = ""
        self.stopped = False

    def add(self, ids: Sequence[int]) -> list[int]:
        """Take new ids and return those that may be sent now."""
        for token in ids:
            self._tokens += 1
            self._take(self._runs.add(token))
            if self.stopped:
                break
        return self._take_released()

    def finish(self) -> list[int]:
        """Return the ids still held back: the answer has ended."""
        if not self.stopped:
            self._take(self._runs.finish())
        self._release(len(self._held))
        return self._take_released()

    def _take(self, runs: Sequence[Run]) -> None:
        for found in runs:
            run = self._opening(found) if self._opens_text else found
            self._held.append(run)
            self._text += run.text
            if self._tokens <= self._tokens_min:
                self._release(len(self._held))
            elif (start := self._stop_word(len(run.text))) is not None:
                self._cut(start)
                return
            else:
                self._release(self._runs_within(self._safe_length()))

    def _opening(self, run: Run) -> Run:
        """Return a run as the beginning of the text; what has no text of its own is not that beginning yet."""
        text = self._table.text(run.ids)
        self._opens_text = not text
        opening = self._table.opening(run.ids)
        if opening == text:
            return run
        ids = self._table.respell(opening)
        # A vocabulary without letters and bytes may not be able to spell it: then the space stays.
        return Run(ids, opening) if self._table.text(ids) == opening else run

    def _stop_word(self, new_length: int) -> int | None:
        """Return where the first stop word begins in the held text, of which the last ``new_length`` are new."""
        earliest = max(0, len(self._text) - new_length - self._longest + 1)
        starts = [start for word in self._stop_words if (start := self._text.find(word, earliest)) >= 0]
        return min(starts, default=None)

    def _safe_length(self) -> int:
        """Return how many held characters can't be the beginning of a stop word."""
        for start in range(max(0, len(self._text) - self._longest + 1), len(self._text)):
            if any(word.startswith(self._text[start:]) for word in self._stop_words):
                return start
        return len(self._text)

    def _cut(self, length: int) -> None:
        """End the answer after ``length`` held characters; those of a run that is cut are spelled anew."""
        whole = self._runs_within(length)
        rest = self._text[len("".join(run.text for run in self._held[:whole])) : length]
        self._held = [*self._held[:whole], *([Run(self._table.respell(rest), rest)] if rest else [])]
        self._release(len(self._held))
        self.stopped = True

    def _runs_within(self, length: int) -> int:
        """Return how many of the held runs lie whole within the first ``length`` characters."""
        end = 0
        for count, run in enumerate(self._held):
            end += len(run.text)
            if end > length:
                return count
        return len(self._held)

    def _release(self, runs: int) -> None:
        for run in self._held[:runs]:
            self._released += run.ids
            self._text = self._text[len(run.text) :]
        self._held = self._held[runs:]

    def _take_released(self) -> list[int]:
        released, self._released = self._released, []
        return released
