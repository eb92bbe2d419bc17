"""Shares and quantiles of a uniform sample with their 95 % intervals; a sample that is the whole log has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor, log2, sqrt
from typing import Any

import numpy as np

Z = 1.959964  # 97.5 % point of the normal distribution


@dataclass(frozen=True)
class Estimate:
    """A value with the interval that holds the whole log's with 95 % confidence."""

    value: float
    low: float
    high: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Sample:
    """``rows`` drawn without replacement from ``log_rows``."""

    rows: int
    log_rows: int

    @property
    def correction(self) -> float:
        """How much narrower an interval is because the log is finite."""
        return sqrt(max(self.log_rows - self.rows, 0) / max(self.log_rows - 1, 1))

    def share(self, count: float) -> Estimate:
        """Wilson's interval of a share, narrowed for a finite log."""
        share = count / self.rows if self.rows else 0.0
        if not self.rows or not self.correction:
            return Estimate(share, share, share)
        z = Z * self.correction
        middle = (share + z**2 / (2 * self.rows)) / (1 + z**2 / self.rows)
        half = z * sqrt(share * (1 - share) / self.rows + z**2 / (4 * self.rows**2)) / (1 + z**2 / self.rows)
        return Estimate(share, max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))

    def quantile(self, ordered: Sequence[int], part: float) -> Estimate:
        """A quantile between the order statistics whose ranks are its binomial interval (normal approximation)."""
        last = len(ordered) - 1
        half = Z * self.correction * sqrt(len(ordered) * part * (1 - part))
        place = part * last
        low, high = max(floor(place - half), 0), min(ceil(place + half), last)
        if not self.correction:
            low = high = round(place)
        return Estimate(ordered[round(place)], ordered[low], ordered[high])


def jensen_shannon(ours: Mapping[Any, float], theirs: Mapping[Any, float]) -> float:
    """Return the Jensen-Shannon divergence of two distributions, in bits: 0 the same, 1 nothing in common."""
    our_sum, their_sum = sum(ours.values()), sum(theirs.values())
    total = 0.0
    for name in ours.keys() | theirs.keys():
        p, q = ours.get(name, 0.0) / our_sum, theirs.get(name, 0.0) / their_sum
        middle = (p + q) / 2
        total += sum(share * log2(share / middle) for share in (p, q) if share > 0) / 2
    return max(total, 0.0)


def kolmogorov_smirnov(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the largest distance between the two cumulative distributions."""
    first, second = np.sort(np.asarray(ours, dtype=float)), np.sort(np.asarray(theirs, dtype=float))
    points = np.concatenate([first, second])
    ranks = (np.searchsorted(one, points, side="right") / len(one) for one in (first, second))
    return float(np.max(np.abs(np.subtract(*ranks))))


def binned_kolmogorov_smirnov(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float:
    """Return the largest distance between the cumulative distributions at the edges of numbered bins."""
    our_sum, their_sum = sum(ours.values()), sum(theirs.values())
    distance = largest = 0.0
    for number in sorted(ours.keys() | theirs.keys()):
        distance += ours.get(number, 0.0) / our_sum - theirs.get(number, 0.0) / their_sum
        largest = max(largest, abs(distance))
    return largest
