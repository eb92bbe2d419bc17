"""How close a chosen set is to its log, feature by feature, beside random draws of the same size."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from trtpipe.calibration.sampling import jensen_shannon, kolmogorov_smirnov
from trtpipe.calibration.select import Candidate, length_bin
from trtpipe.calibration.style import Style

DRAWS = 20
Pair = tuple[Candidate, Style]


@dataclass(frozen=True)
class Feature:
    """``stratified``: whether rows are chosen by it. A mixture is compared by Jensen-Shannon, else by KS."""

    of: Callable[[Pair], Any]
    mixture: bool = False
    stratified: bool = False


FEATURES = {
    "segment": Feature(lambda pair: pair[0].segment, mixture=True, stratified=True),
    "length bin": Feature(lambda pair: length_bin(pair[0].counted.tokens), mixture=True, stratified=True),
    "tokens": Feature(lambda pair: pair[0].counted.tokens, stratified=True),
    "prompt tokens": Feature(lambda pair: pair[0].counted.prompt_tokens),
    "response tokens": Feature(lambda pair: pair[0].counted.response_tokens),
    "words": Feature(lambda pair: pair[1].words),
    "share of digits": Feature(lambda pair: pair[1].digits_share),
    "share of capitals": Feature(lambda pair: pair[1].capitals_share),
    "language": Feature(lambda pair: pair[1].language, mixture=True),
    "turns": Feature(lambda pair: pair[1].turns),
}


@dataclass(frozen=True)
class Distance:
    """``chosen``: of the set; ``random_median``: of random draws. Jensen-Shannon in bits, else a KS distance."""

    feature: str
    statistic: str
    stratified: bool
    chosen: float
    random_median: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


def distances(chosen: Sequence[Pair], log: Sequence[Pair], seed: int) -> list[Distance]:
    """Compare the set, and ``DRAWS`` random draws of its size, with the log."""
    rng = random.Random(seed)  # noqa: S311 - a draw to compare with, nothing secret
    size = min(len(chosen), len(log))
    draws = [rng.sample(log, size) for _ in range(DRAWS)]
    found = []
    for name, feature in FEATURES.items():
        whole = _values(log, feature)
        by_chance = median(_distance(_values(draw, feature), whole, feature) for draw in draws)
        statistic = "Jensen-Shannon, bits" if feature.mixture else "Kolmogorov-Smirnov"
        ours = _distance(_values(chosen, feature), whole, feature)
        found.append(Distance(name, statistic, feature.stratified, ours, by_chance))
    return found


def _values(pairs: Sequence[Pair], feature: Feature) -> Any:
    values = [feature.of(pair) for pair in pairs]
    return Counter(values) if feature.mixture else values


def _distance(ours: Any, theirs: Any, feature: Feature) -> float:
    return jensen_shannon(ours, theirs) if feature.mixture else kolmogorov_smirnov(ours, theirs)
