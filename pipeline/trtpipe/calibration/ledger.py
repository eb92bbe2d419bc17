"""What became of every row: kept, cut, windowed or dropped for a reason; the sums add up or it is a bug."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from trtpipe.errors import ConfigError, TrtpipeError

# Reasons why a row is dropped, with what they mean to a reader.
BLANK = "blank"
SHORT = "too short"
DUPLICATE = "exact duplicate"
NEAR_DUPLICATE = "near duplicate"
NEAR_HELDOUT = "near a held-out row"
OVER_LENGTH = "over the length limit"
BEYOND_POOL = "beyond the pool"
NOT_NEEDED = "not needed"
REASONS = {
    BLANK: "no text but spaces",
    SHORT: "fewer characters than prompts.prompt_characters_min",
    DUPLICATE: "the same prompt stands earlier in the log",
    NEAR_DUPLICATE: "almost the same prompt is in the pool already",
    NEAR_HELDOUT: "would calibrate on what the drift check asks",
    OVER_LENGTH: "more tokens than prompts.prompt_tokens_max",
    BEYOND_POOL: "its keyed hash is beyond the pool that is looked at closely",
    NOT_NEEDED: "both sets were full",
}


@dataclass
class Ledger:
    """Counts of rows. ``dropped``: by reason; bad rows count as ``unreadable: <kind>``."""

    rows: int = 0
    kept: int = 0
    cut: int = 0
    windowed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def close(self) -> None:
        """Check that every row ended in exactly one place. A difference is a bug of this program."""
        ends = self.kept + self.cut + self.windowed + self.dropped.total()
        if ends != self.rows:
            raise TrtpipeError(f"the ledger does not add up: {self.rows} row(s), {ends} accounted for")

    @property
    def document(self) -> dict[str, Any]:
        dropped = {reason: count for reason, count in sorted(self.dropped.items()) if count}
        ends = {"kept": self.kept, "cut": self.cut, "windowed": self.windowed}
        return {"rows": self.rows, **ends, "dropped": dropped}

    def __str__(self) -> str:
        dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(self.dropped.items()) if count)
        ends = f"{self.kept} kept, {self.cut} cut, {self.windowed} windowed, {self.dropped.total()} dropped"
        return f"{self.rows} row(s): {ends}{dropped and f' ({dropped})'}"


@dataclass(frozen=True)
class Shortfall:
    """What was asked for and what came of it. ``what``: such as "calibration prompts"."""

    what: str
    asked: int
    delivered: int

    def __str__(self) -> str:
        return f"{self.delivered} of {self.asked} {self.what}"


def refuse_short(shortfalls: list[Shortfall], ledger: Ledger, where: str) -> None:
    """Raise ConfigError naming every shortfall, with the ledger beside it."""
    if shortfalls:
        raise ConfigError(
            f"fewer than asked: {'; '.join(map(str, shortfalls))}. Ledger: {ledger}",
            where=where,
            fix="give more prompts, ask for fewer, or accept it with prompts.allow_short: true",
        )
