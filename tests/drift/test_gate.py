"""From intervals to outcomes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from drift.synthetic import pair, policy
from trtpipe.drift import gate, metrics
from trtpipe.drift.gate import Evidence, Finding, Metric
from trtpipe.drift.policy import Limits
from trtpipe.drift.statistics import Estimate
from trtpipe.errors import Stale

AT_MOST = Metric("kl_top20_nats", "nats per token", "max")
AT_LEAST = Metric("top1_agreement", "share of tokens", "min")
# What "%.4g" makes of these two is the same text.
HAIR = 1e-9


def judge(metric: Metric, low: float, high: float, limit: float, *, prompts: int = 50) -> Finding:
    return gate.judge(metric, Estimate((low + high) / 2, low, high), limit, Evidence("overall", prompts, 900, 20))


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.01, 0.05, "pass"),
        (0.01, 0.05 + HAIR, "inconclusive"),
        (0.05, 0.09, "inconclusive"),
        (0.05 + HAIR, 0.09, "fail"),
    ],
)
def test_a_limit_that_must_not_be_exceeded(low: float, high: float, outcome: str) -> None:
    assert judge(AT_MOST, low, high, 0.05).outcome == outcome


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.94, 0.99, "pass"),
        (0.94 - HAIR, 0.99, "inconclusive"),
        (0.90, 0.94, "inconclusive"),
        (0.90, 0.94 - HAIR, "fail"),
    ],
)
def test_a_limit_that_must_be_reached(low: float, high: float, outcome: str) -> None:
    assert judge(AT_LEAST, low, high, 0.94).outcome == outcome


def test_excess_is_signed_and_unrounded() -> None:
    assert judge(AT_MOST, 0.06, 0.08, 0.05).excess == pytest.approx(0.02, rel=1e-12)
    assert judge(AT_LEAST, 0.96, 0.98, 0.94).excess == pytest.approx(-0.03, rel=1e-12)
    assert judge(AT_LEAST, 0.90, 0.92, 0.94).excess == pytest.approx(0.03, rel=1e-12)
    assert judge(AT_MOST, 0.05, 0.05 + 2 * HAIR, 0.05).excess == pytest.approx(HAIR, rel=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.02), (0.5, 0.6)])
def test_too_few_prompts_are_inconclusive_whatever_they_say(low: float, high: float) -> None:
    found = judge(AT_MOST, low, high, 0.05, prompts=19)
    assert found.outcome == "inconclusive"
    assert found.reason.endswith("19 prompt(s), at least 20 needed")
    assert judge(AT_MOST, low, high, 0.05, prompts=20).outcome != "inconclusive"


def test_one_prompt_is_never_enough() -> None:
    point = Estimate(0.01, 0.01, 0.01)
    assert gate.judge(AT_MOST, point, 0.05, Evidence("overall", 1, 10, 1)).outcome == "inconclusive"
    assert gate.judge(AT_MOST, point, 0.05, Evidence("overall", 2, 20, 1)).outcome == "pass"


def test_the_reason_names_scope_metric_numbers_and_limit() -> None:
    assert judge(AT_MOST, 0.02, 0.08, 0.05).reason == (
        "overall: kl_top20_nats 0.05 [0.02, 0.08], max 0.05: the interval reaches across"
    )


def test_fail_beats_inconclusive_beats_pass() -> None:
    rank = ["pass", "inconclusive", "fail"]
    for outcomes in itertools.product(rank, repeat=3):
        assert gate.combine(outcomes) == max(outcomes, key=rank.index)


def test_each_segment_has_its_own_limits_and_its_own_rows() -> None:
    lengths = [6] * 16
    calm, calm_candidate = pair(1, lengths, 0.0)
    _, wild_candidate = pair(1, lengths, 3.0)
    rows_calm, rows_wild = metrics.compare(calm, calm_candidate), metrics.compare(calm, wild_candidate)
    # the first ten prompts keep to the baseline, the last six do not
    kept = np.arange(16) < 10
    rows = metrics.RowSums(
        row_ids=rows_calm.row_ids,
        tokens=rows_calm.tokens,
        kl_top20_nats=np.where(kept, rows_calm.kl_top20_nats, rows_wild.kl_top20_nats),
        agreeing_tokens=np.where(kept, rows_calm.agreeing_tokens, rows_wild.agreeing_tokens),
        baseline_nll_nats=rows_calm.baseline_nll_nats,
        candidate_nll_nats=np.where(kept, rows_calm.candidate_nll_nats, rows_wild.candidate_nll_nats),
    )
    segment_of = {f"r{index}": "code" if index < 10 else "mail" for index in range(16)}
    wide = Limits(kl_top20_nats_max=99, top1_agreement_min=0.001, perplexity_ratio_max=999)
    found = gate.judge_rows(rows, segment_of, policy(overall=wide))
    assert {name: finding.outcome for name, finding in found.overall.items()} == {
        "kl_top20_nats": "pass",
        "top1_agreement": "pass",
        "perplexity_ratio": "pass",
    }
    assert list(found.segments) == ["code", "mail"]
    assert {finding.outcome for finding in found.segments["code"].values()} == {"pass"}
    assert found.segments["mail"]["kl_top20_nats"].outcome == "fail"
    assert (found.segments["mail"]["kl_top20_nats"].prompts, found.segments["mail"]["kl_top20_nats"].tokens) == (6, 36)
    assert found.segments["mail"]["kl_top20_nats"].value > 2 * found.overall["kl_top20_nats"].value
    assert found.overall["top1_agreement"].limit == 0.001
    assert found.segments["code"]["top1_agreement"].limit == 0.94
    few = gate.judge_rows(rows, segment_of, policy(heldout_prompts_per_segment_min=7, heldout_prompts_min=17))
    assert {finding.outcome for finding in few.segments["code"].values()} == {"pass"}
    assert {finding.outcome for finding in few.segments["mail"].values()} == {"inconclusive"}
    assert {finding.outcome for finding in few.overall.values()} == {"inconclusive"}


def test_a_row_without_a_segment_is_refused() -> None:
    rows = metrics.compare(*pair(1, [2, 2], 0.1))
    with pytest.raises(Stale, match="1 scored row") as caught:
        gate.judge_rows(rows, {"r0": "code"}, policy())
    assert caught.value.where == "row r1"
