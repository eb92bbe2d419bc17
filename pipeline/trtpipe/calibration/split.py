"""Divide prompts into held-out and calibration rows: stratified by segment, stable as the log grows."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtpipe.calibration.sources import Row


@dataclass(frozen=True)
class Split:
    """The two sets, and what was not needed or could not be given."""

    heldout: list[Row]
    calibration: list[Row]
    not_needed: int
    shortfalls: dict[str, int]


def rank(row: Row, seed: int) -> bytes:
    """Return a row's place in the order: a keyed hash of its prompt, so that adding rows moves no others."""
    text = json.dumps(row.messages, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), key=seed.to_bytes(8, "big"), digest_size=16).digest()


def split(rows: list[Row], *, heldout_per_segment: int, calibration_max: int, seed: int) -> Split:
    """Hold out the first rows of each segment's order, at most two thirds of the segment; the rest calibrate.

    ``shortfalls`` maps a segment to how many held-out prompts it lacks.
    """
    segments: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        segments[row.segment].append(row)
    heldout: list[Row] = []
    rest: list[Row] = []
    shortfalls: dict[str, int] = {}
    for name in sorted(segments):
        ordered = sorted(segments[name], key=lambda row: rank(row, seed))
        count = min(heldout_per_segment, len(ordered) * 2 // 3)
        if count < heldout_per_segment:
            shortfalls[name] = heldout_per_segment - count
        heldout += ordered[:count]
        rest += ordered[count:]
    rest.sort(key=lambda row: rank(row, seed))
    return Split(heldout, rest[:calibration_max], max(0, len(rest) - calibration_max), shortfalls)
