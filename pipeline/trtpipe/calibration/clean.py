"""Make the pool's rows fit to be used: control characters, masking, and copies that only now show."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtpipe.calibration import ledger as ends
from trtpipe.calibration.masking import mask
from trtpipe.calibration.row import Row, rank

if TYPE_CHECKING:
    from trtpipe.calibration.ledger import Ledger

# C0 and C1 but tab, line feed and carriage return; DEL. Tokenizers have bytes for them, prompts have no use for them.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass
class Cleaned:
    """The rows in rank order, and what was done to them. ``masked``: replacements by kind."""

    rows: list[Row] = field(default_factory=list)
    rows_with_control_characters: int = 0
    control_characters_removed: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    rows_masked: int = 0


def clean(rows: list[Row], *, mask_personal_data: bool, seed: int, ledger: Ledger) -> Cleaned:
    """Clean the rows; what has become blank or equal by it is dropped into the ledger."""
    cleaned = Cleaned()
    by_rank: dict[bytes, Row] = {}
    for row in rows:
        made = _without_control(row, cleaned)
        if mask_personal_data:
            before = cleaned.masked.total()
            made = mask(made, cleaned.masked)
            cleaned.rows_masked += cleaned.masked.total() > before
        identity = rank(made.canonical, seed)
        if not made.asked_characters:
            ledger.dropped[ends.BLANK] += 1
        elif identity in by_rank:
            ledger.dropped[ends.DUPLICATE] += 1
        else:
            by_rank[identity] = made
    cleaned.rows = [by_rank[identity] for identity in sorted(by_rank)]
    return cleaned


def _without_control(row: Row, cleaned: Cleaned) -> Row:
    removed = 0

    def strip(text: str) -> str:
        nonlocal removed
        stripped, count = CONTROL.subn("", text)
        removed += count
        return stripped

    messages = tuple(message._replace(content=strip(message.content)) for message in row.messages)
    response = row.response and strip(row.response)
    if not removed:
        return row
    cleaned.rows_with_control_characters += 1
    cleaned.control_characters_removed += removed
    return replace(row, messages=messages, response=response)
