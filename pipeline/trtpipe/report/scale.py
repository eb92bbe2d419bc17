"""A linear axis: where a number lies on it, and which numbers get a tick."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MARGIN = 0.06  # of the range, so that no mark sits on the edge
TICKS_ABOUT = 4


@dataclass(frozen=True)
class Scale:
    """Maps ``low`` .. ``high`` to ``start`` .. ``end``, in pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float | None) -> float:
        """Return the pixel; what is beyond the axis, or not finite, is drawn at its end."""
        if value is None or not math.isfinite(value):
            return self.end
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round numbers on the axis with their labels."""
        step = _round_step((self.high - self.low) / TICKS_ABOUT)
        decimals = max(0, -math.floor(math.log10(step)))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(index * step, f"{index * step:,.{decimals}f}") for index in range(first, last + 1)]


def covering(values: Iterable[float | None], start: float, end: float) -> Scale:
    """Return a scale with a margin around the finite ones of ``values``."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite), max(finite)
    margin = (high - low) * MARGIN or abs(high) * MARGIN or 1.0
    return Scale(low - margin, high + margin, start, end)


def _round_step(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten: the next above, or one that is hardly below."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.85)
