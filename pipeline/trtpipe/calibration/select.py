"""Choose held-out and calibration rows: by segment and length, in the order of their keyed hash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log2
from typing import TYPE_CHECKING

from trtpipe.calibration.apportion import apportion
from trtpipe.calibration.near import Neighbours

if TYPE_CHECKING:
    from trtpipe.calibration.row import Row
    from trtpipe.calibration.tokens import Counted

BINS_PER_OCTAVE = 4
CHOOSING_BINS_PER_OCTAVE = 16
HELDOUT_SHARE_MAX = (2, 3)


@dataclass(frozen=True)
class Candidate:
    """A row that could be chosen. ``weight``: how many rows of the log it stands for."""

    counted: Counted
    segment: str
    weight: float

    @property
    def row(self) -> Row:
        return self.counted.row


@dataclass
class Chosen:
    """The two sets in rank order. ``heldout_lacking``: how many a segment lacks. ``near_heldout``: rows passed over."""

    heldout: list[Candidate] = field(default_factory=list)
    calibration: list[Candidate] = field(default_factory=list)
    heldout_lacking: dict[str, int] = field(default_factory=dict)
    near_heldout: int = 0


def length_bin(tokens: int, per_octave: int = BINS_PER_OCTAVE) -> int:
    """Return the number of the fixed bin: so many to an octave, so that a growing log moves no edge."""
    return floor(per_octave * log2(max(tokens, 1)))


def choose(
    candidates: Sequence[Candidate],
    *,
    calibration: int,
    heldout_per_segment: int,
    segment_min: int,
    similarity: float,
) -> Chosen:
    """Choose from candidates in rank order.

    Each segment's first rows are held out, at most two thirds of it; from the rest, ``calibration`` rows in the
    proportions of the log. No calibration row is a near copy (``similarity``) of a held-out one.
    """
    chosen = Chosen()
    segments: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        segments[candidate.segment].append(candidate)
    rest: dict[str, list[Candidate]] = {}
    part, whole = HELDOUT_SHARE_MAX
    for name in sorted(segments):
        rows = segments[name]
        count = min(heldout_per_segment, len(rows) * part // whole)
        if count < heldout_per_segment:
            chosen.heldout_lacking[name] = heldout_per_segment - count
        chosen.heldout += rows[:count]
        rest[name] = rows[count:]
    weights = {name: sum(row.weight for row in rows) for name, rows in segments.items()}
    places = apportion(calibration, weights, {name: len(rows) for name, rows in rest.items()}, segment_min)
    heldout = Neighbours((candidate.row for candidate in chosen.heldout), similarity)
    picked: set[Row] = set()
    for name, count in places.items():
        like = _lengths(segments[name])
        fitting = [candidate for candidate in rest[name] if not heldout.near(candidate.row)]
        chosen.near_heldout += len(rest[name]) - len(fitting)
        picked.update(candidate.row for candidate in _by_length(fitting, count, like))
    chosen.calibration = [candidate for candidate in candidates if candidate.row in picked]
    return chosen


def _by_length(rows: Sequence[Candidate], count: int, like: Mapping[int, float]) -> list[Candidate]:
    """Return ``count`` of one segment's rows (fewer where there are fewer), with lengths distributed ``like`` it.

    Up to every edge of the length bins the number of rows is the rounded share of the segment: largest remainders
    would leave each bin half a row off, and these add up over so many bins. What a bin lacks the next ones give.
    """
    bins: dict[int, list[Candidate]] = defaultdict(list)
    for row in rows:
        bins[_bin(row)].append(row)
    total, below = sum(like.values()), 0.0
    chosen: list[Candidate] = []
    for number in sorted(like):
        below += like[number]
        chosen += bins[number][: max(round(count * below / total) - len(chosen), 0)]
    taken = {candidate.row.id for candidate in chosen}
    left = [row for row in rows if row.row.id not in taken]
    return chosen + left[: count - len(chosen)]


def _lengths(rows: Sequence[Candidate]) -> dict[int, float]:
    """Return how much of the log each length bin of these rows stands for."""
    weights: dict[int, float] = defaultdict(float)
    for row in rows:
        weights[_bin(row)] += row.weight
    return weights


def _bin(row: Candidate) -> int:
    return length_bin(row.counted.tokens, CHOOSING_BINS_PER_OCTAVE)
