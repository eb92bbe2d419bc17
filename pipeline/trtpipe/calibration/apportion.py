"""Divide a number of places among groups: largest remainder, with a least and a most for each group."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

HALVINGS = 100  # of the interval that the common scale is searched in: down to the last bit
TOLERANCE = 1e-9  # a quota that misses a whole number by so much is that number


def apportion(total: int, weights: Mapping[str, float], most: Mapping[str, int], least: int = 0) -> dict[str, int]:
    """Return each group's places: proportional to its weight, rounded by largest remainder (Hare quota).

    Each group of positive weight gets at least ``least`` (fewer where its ``most`` is smaller or the total does not
    suffice) and at most ``most``; the others share the rest by one common scale. The sum is ``total``, or the sum of
    ``most`` where that is smaller.
    """
    names = sorted(name for name in weights if weights[name] > 0 and most[name] > 0)
    if not names:
        return {}
    total = min(total, sum(most[name] for name in names))
    least = min(least, total // len(names))

    def quotas(scale: float) -> dict[str, float]:
        return {name: min(max(scale * weights[name], min(least, most[name])), most[name]) for name in names}

    low, high = 0.0, (total + 1) / min(weights[name] for name in names)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(quotas(middle).values()) >= total else (middle, high)
    return _rounded(total, quotas(high), most)


def _rounded(total: int, quotas: Mapping[str, float], most: Mapping[str, int]) -> dict[str, int]:
    places = {name: floor(quota + TOLERANCE) for name, quota in quotas.items()}
    left = total - sum(places.values())
    for name in sorted(quotas, key=lambda name: (places[name] - quotas[name], name)):
        if left > 0 and places[name] < most[name]:
            places[name] += 1
            left -= 1
    return places
