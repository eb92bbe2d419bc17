"""Does new traffic still look like the traffic that was calibrated on? Statistics, limits, and what is beyond them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import log, sqrt
from typing import Any

from trtpipe.calibration.sampling import binned_kolmogorov_smirnov, jensen_shannon

# Limits on top of what two samples of the same traffic differ by chance. 0.02 bits: for instance a segment of 20 %
# that grows to 34 %. 0.1: a tenth of the prompts moved past some length.
JENSEN_SHANNON_MAX_BITS = 0.02
KOLMOGOROV_SMIRNOV_MAX = 0.1
SHARE_MOVED_MAX = 0.1
Z = 2.575829  # 99.5 % point of the normal distribution: 1 in 100 comparisons of equal traffic goes beyond chance
ALPHA = 0.01


@dataclass(frozen=True)
class Finding:
    """One statistic: ``limit`` is the tolerated change plus what chance explains (99 %)."""

    feature: str
    statistic: str
    value: float
    limit: float

    @property
    def inside(self) -> bool:
        return self.value <= self.limit

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"inside": self.inside}


Distribution = Mapping[str, float]


def compare(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[Finding]:
    """Compare two profiles' ``reference`` documents."""
    rows = (then["rows"], now["rows"])
    found = [
        _mixture("segments", then["segments"], now["segments"], rows),
        _lengths("prompt_tokens", then["prompt_tokens"], now["prompt_tokens"]),
        _mixture("languages", then["languages"], now["languages"], rows),
    ]
    if then["response_tokens"] and now["response_tokens"]:
        found.insert(2, _lengths("response_tokens", then["response_tokens"], now["response_tokens"]))
    found += [_share(name, then["style"][name], now["style"][name], rows) for name in then["style"]]
    return found


def _mixture(feature: str, then: Distribution, now: Distribution, rows: tuple[int, int]) -> Finding:
    """Jensen-Shannon; by chance 8 ln 2 n m / (n + m) times it is about chi-square of one fewer than the groups."""
    freedom = max(len(then.keys() | now.keys()) - 1, 1)
    chi_square = freedom * (1 - 2 / (9 * freedom) + 2.326348 * sqrt(2 / (9 * freedom))) ** 3  # Wilson and Hilferty
    chance = chi_square * (1 / rows[0] + 1 / rows[1]) / (8 * log(2))
    return Finding(feature, "Jensen-Shannon, bits", jensen_shannon(then, now), JENSEN_SHANNON_MAX_BITS + chance)


def _lengths(feature: str, then: Distribution, now: Distribution) -> Finding:
    """Kolmogorov-Smirnov over the length bins; by chance below sqrt(-ln(alpha / 2) (1/n + 1/m) / 2)."""
    chance = sqrt(-log(ALPHA / 2) * (1 / sum(then.values()) + 1 / sum(now.values())) / 2)
    ours, theirs = ({int(number): count for number, count in found.items()} for found in (then, now))
    value = binned_kolmogorov_smirnov(ours, theirs)
    return Finding(feature, "Kolmogorov-Smirnov", value, KOLMOGOROV_SMIRNOV_MAX + chance)


def _share(feature: str, then: float, now: float, rows: tuple[int, int]) -> Finding:
    shares = then / rows[0], now / rows[1]
    both = (then + now) / sum(rows)
    chance = Z * sqrt(both * (1 - both) * (1 / rows[0] + 1 / rows[1]))
    return Finding(feature, "change of share", abs(shares[0] - shares[1]), SHARE_MOVED_MAX + chance)
