"""How fast an answer comes."""

from __future__ import annotations

import time


class Pace:
    """Times the tokens of one request. ``arrived_s``: on the clock of ``time.monotonic``, as all times here."""

    def __init__(self, arrived_s: float) -> None:
        self._arrived_s = arrived_s
        self._first_s = self._last_s = 0.0
        self._first_tokens = 0
        self.tokens = 0

    def add(self, tokens: int) -> bool:
        """Take the time of tokens that have come now. True for the first ones of the answer."""
        self._last_s = time.monotonic()
        first = self.tokens == 0 < tokens
        if first:
            self._first_s, self._first_tokens = self._last_s, tokens
        self.tokens += tokens
        return first

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the arrival."""
        return (time.monotonic() - self._arrived_s) * 1000

    @property
    def first_token_s(self) -> float:
        """Seconds from the arrival to the first token."""
        return self._first_s - self._arrived_s

    @property
    def token_s(self) -> float | None:
        """Mean seconds a token after the first ones, which come at once; None where none came after them."""
        later = self.tokens - self._first_tokens
        return (self._last_s - self._first_s) / later if later else None
