"""Intervals for ratios of sums, by resampling prompts: tokens of one prompt are not independent evidence."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trtpipe.drift.metrics import RowSums

METHOD = "bootstrap by prompt, bias-corrected and accelerated"
SEED = 20240229

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float

    def mapped(self, increasing: Callable[[float], float]) -> Estimate:
        """Return the estimate of an increasing function of the value."""
        return Estimate(increasing(self.value), increasing(self.low), increasing(self.high))


def estimates(rows: RowSums, *, confidence: float, resamples: int) -> dict[str, Estimate]:
    """Return kl_top20_nats (per token), top1_agreement (share) and perplexity_ratio, with intervals."""

    def per_token(sums: NDArray[np.float64] | NDArray[np.int64]) -> Estimate:
        return ratio_of_sums(sums, rows.tokens, confidence=confidence, resamples=resamples)

    return {
        "kl_top20_nats": per_token(rows.kl_top20_nats),
        "top1_agreement": per_token(rows.agreeing_tokens),
        "perplexity_ratio": per_token(rows.candidate_nll_nats - rows.baseline_nll_nats).mapped(_exp),
    }


def ratio_of_sums(
    numerators: NDArray[np.float64] | NDArray[np.int64],
    denominators: NDArray[np.int64],
    *,
    confidence: float,
    resamples: int,
) -> Estimate:
    """Return sum(numerators) / sum(denominators) over the rows, [R] each, with a two-sided BCa interval.

    Rows are drawn with replacement and both sums taken anew (Efron and Tibshirani, An Introduction to the
    Bootstrap, 14.3). Always the same draws for the same R. One row, or rows that all agree, give a point.
    """
    row_count = len(denominators)
    value = float(numerators.sum() / denominators.sum())
    draws = np.random.default_rng(SEED).multinomial(row_count, np.full(row_count, 1 / row_count), size=resamples)
    resampled = (draws @ numerators) / (draws @ denominators)
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    bias = _bias(resampled, value)
    acceleration = _acceleration(numerators, denominators)
    low, high = np.quantile(resampled, [_level(tail, bias, acceleration) for tail in tails])
    return Estimate(value, float(low), float(high))


def _bias(resampled: NDArray[np.float64], value: float) -> float:
    """Return z0: where the value stands among the resampled ones, ties counted half."""
    share = float((resampled < value).mean() + (resampled <= value).mean()) / 2
    least = 0.5 / len(resampled)
    return _NORMAL.inv_cdf(min(max(share, least), 1 - least))


def _acceleration(numerators: NDArray[np.float64] | NDArray[np.int64], denominators: NDArray[np.int64]) -> float:
    """Return a: a sixth of the skewness of the values with one row left out."""
    if len(denominators) == 1:
        return 0.0
    without_one = (numerators.sum() - numerators) / (denominators.sum() - denominators)
    influence = without_one.mean() - without_one
    spread = float((influence**2).sum())
    return float((influence**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def _level(tail: float, bias: float, acceleration: float) -> float:
    """Return which quantile of the resampled values is the interval's end."""
    shift = bias + _NORMAL.inv_cdf(tail)
    stretch = 1 - acceleration * shift
    # At extreme confidences the formula turns around; its limit is the outermost value.
    return _NORMAL.cdf(bias + shift / stretch) if stretch > 0 else float(shift > 0)


def _exp(value: float) -> float:
    return float(np.exp(value))
