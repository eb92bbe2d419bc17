"""From intervals and limits to pass, fail or inconclusive, with a reason for each limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from trtpipe.drift import statistics
from trtpipe.errors import Stale

if TYPE_CHECKING:
    from trtpipe.drift.metrics import RowSums
    from trtpipe.drift.policy import Limits, Policy
    from trtpipe.drift.statistics import Estimate

Outcome = Literal["pass", "fail", "inconclusive"]
Bound = Literal["max", "min"]

# One prompt has no spread, so its interval would be a point and look certain.
PROMPTS_WITH_SPREAD = 2


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its unit and on which side its limit is."""

    name: str
    unit: str
    bound: Bound


METRICS = (
    Metric("kl_top20_nats", "nats per token", "max"),
    Metric("top1_agreement", "share of tokens", "min"),
    Metric("perplexity_ratio", "release over baseline", "max"),
)


@dataclass(frozen=True)
class Evidence:
    """What a finding rests on."""

    scope: str
    prompts: int
    tokens: int
    prompts_min: int


class Finding(BaseModel):
    """One metric of one scope against its limit; numbers are unrounded, in ``unit``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    unit: str
    value: float
    low: float
    high: float
    limit: float
    bound: Bound
    excess: float  # of the value beyond the limit; negative: inside
    prompts: int
    tokens: int
    outcome: Outcome
    reason: str


class Judgement(BaseModel):
    """The findings by metric: over all prompts, and for each segment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    overall: dict[str, Finding]
    segments: dict[str, dict[str, Finding]]


def judge_rows(rows: RowSums, segment_of: Mapping[str, str], policy: Policy) -> Judgement:
    """Judge all rows together and each segment alone; ``segment_of`` maps row ids to segments.

    Raises Stale for a row that has no segment.
    """
    lacking = [row_id for row_id in rows.row_ids if row_id not in segment_of]
    if lacking:
        raise Stale(
            f"{len(lacking)} scored row(s) are not in the prompt set",
            where=f"row {lacking[0]}",
            fix="score again on this prompt set",
        )
    segments = np.array([segment_of[row_id] for row_id in rows.row_ids])
    return Judgement(
        overall=_judge_scope("overall", rows, policy.overall, policy.heldout_prompts_min, policy),
        segments={
            str(segment): _judge_scope(
                f"segment {segment}",
                rows.select(segments == segment),
                policy.per_segment,
                policy.heldout_prompts_per_segment_min,
                policy,
            )
            for segment in np.unique(segments)
        },
    )


def _judge_scope(scope: str, rows: RowSums, limits: Limits, prompts_min: int, policy: Policy) -> dict[str, Finding]:
    evidence = Evidence(scope, len(rows.row_ids), int(rows.tokens.sum()), prompts_min)
    estimates = statistics.estimates(rows, confidence=policy.confidence, resamples=policy.bootstrap_resamples)
    return {
        metric.name: judge(metric, estimates[metric.name], getattr(limits, f"{metric.name}_{metric.bound}"), evidence)
        for metric in METRICS
    }


def judge(metric: Metric, estimate: Estimate, limit: float, evidence: Evidence) -> Finding:
    """Pass if the whole interval is inside the limit, fail if all of it is beyond, else inconclusive.

    With too few prompts it is inconclusive whatever the interval.
    """
    value, near, far = estimate.value, estimate.low, estimate.high
    sign = 1
    if metric.bound == "min":
        near, far, sign = far, near, -1
    outcome: Outcome = "inconclusive"
    prompts_needed = max(evidence.prompts_min, PROMPTS_WITH_SPREAD)
    if evidence.prompts < prompts_needed:
        why = f"{evidence.prompts} prompt(s), at least {prompts_needed} needed"
    elif sign * (far - limit) <= 0:
        outcome, why = "pass", "the whole interval is inside"
    elif sign * (near - limit) > 0:
        outcome, why = "fail", "the whole interval is beyond"
    else:
        why = "the interval reaches across"
    return Finding(
        metric=metric.name,
        unit=metric.unit,
        value=value,
        low=estimate.low,
        high=estimate.high,
        limit=limit,
        bound=metric.bound,
        excess=sign * (value - limit),
        prompts=evidence.prompts,
        tokens=evidence.tokens,
        outcome=outcome,
        reason=f"{evidence.scope}: {metric.name} {value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}], "
        f"{metric.bound} {limit:.4g}: {why}",
    )


def combine(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome of several: fail beats inconclusive beats pass."""
    found = set(outcomes)
    if "fail" in found:
        return "fail"
    return "inconclusive" if "inconclusive" in found else "pass"
