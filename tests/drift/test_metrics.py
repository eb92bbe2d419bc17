"""Metrics of two passes against the same arithmetic on whole distributions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.synthetic import log_softmax, logits_of, pair, scores
from trtpipe.drift import metrics
from trtpipe.errors import Stale

SEEDS = st.integers(0, 2**31)
NOISE = st.floats(0.01, 5)
LENGTHS = [3, 1, 6, 2]


def test_equal_sides_have_no_drift() -> None:
    baseline, _ = pair(1, LENGTHS, 0)
    rows = metrics.compare(baseline, baseline)
    assert rows.tokens.tolist() == LENGTHS
    assert rows.agreeing_tokens.tolist() == LENGTHS
    assert rows.kl_top20_nats.tolist() == [0.0] * 4
    assert rows.baseline_nll_nats.tolist() == rows.candidate_nll_nats.tolist()


@settings(deadline=None)  # other work may hold the cores
@given(SEEDS, NOISE)
def test_the_bound_is_positive_and_below_the_divergence_of_the_whole_vocabulary(seed: int, noise: float) -> None:
    logits, token_ids = logits_of(seed, LENGTHS)
    p = log_softmax(logits)
    q = log_softmax(logits + np.random.default_rng(seed + 1).normal(0, 1, logits.shape) * noise)
    baseline = scores(p, token_ids, LENGTHS)
    bound = metrics.kl_top20_nats(baseline, scores(q, token_ids, LENGTHS, top_ids=baseline.top_ids))
    full = (np.exp(p) * (p - q)).sum(axis=1)
    assert (bound <= full + 1e-5).all()
    assert (bound > 0).all()


def test_the_bound_is_the_divergence_of_the_merged_distributions() -> None:
    p = np.array([*np.geomspace(0.3, 0.001, 22), *[0.0005] * 6])
    p /= p.sum()
    q = np.roll(p, 5)
    observed = np.array([24])  # outside the top 20: a bucket of its own
    baseline = scores(np.log(p)[None], observed, [1])
    candidate = scores(np.log(q)[None], observed, [1], top_ids=baseline.top_ids)
    p_merged = np.array([*p[:20], p[24], p[20:].sum() - p[24]])
    q_merged = np.array([*q[:20], q[24], q[20:].sum() - q[24]])
    expected = (p_merged * np.log(p_merged / q_merged)).sum()
    assert metrics.kl_top20_nats(baseline, candidate)[0] == pytest.approx(expected, rel=1e-5)
    # an observed token of the top 20 has its bucket already
    baseline = scores(np.log(p)[None], np.array([3]), [1])
    candidate = scores(np.log(q)[None], np.array([3]), [1], top_ids=baseline.top_ids)
    p_merged, q_merged = np.array([*p[:20], p[20:].sum()]), np.array([*q[:20], q[20:].sum()])
    expected = (p_merged * np.log(p_merged / q_merged)).sum()
    assert metrics.kl_top20_nats(baseline, candidate)[0] == pytest.approx(expected, rel=1e-5)


def test_a_total_above_one_by_rounding_does_no_harm() -> None:
    baseline, _ = pair(2, [1], 0)
    top = np.full((1, 20), -60.0, dtype=np.float32)
    top[0, 0] = 5e-5  # more than certain
    certain = dataclasses.replace(baseline, top=top, observed=np.array([-60.0], dtype=np.float32))
    assert metrics.kl_top20_nats(certain, certain)[0] == 0.0
    top = top.copy()
    top[0, 0] = 0.0
    just_certain = dataclasses.replace(certain, top=top)
    assert abs(metrics.kl_top20_nats(just_certain, certain)[0]) < 1e-8
    top = np.full((1, 20), -900.0, dtype=np.float32)
    top[0, 1] = 0.0  # certain of another token; exp(-900) is zero
    other = dataclasses.replace(baseline, top=top, observed=np.array([-900.0], dtype=np.float32))
    assert metrics.kl_top20_nats(certain, other)[0] == pytest.approx(900, rel=1e-3)
    assert metrics.kl_top20_nats(other, certain)[0] == pytest.approx(60, rel=1e-3)


def test_sums_are_by_row() -> None:
    baseline, candidate = pair(3, LENGTHS, 0.8)
    rows = metrics.compare(baseline, candidate)
    agree = baseline.argmax == candidate.argmax
    assert rows.agreeing_tokens.tolist() == [agree[:3].sum(), agree[3:4].sum(), agree[4:10].sum(), agree[10:].sum()]
    assert rows.candidate_nll_nats[2] == -candidate.observed[4:10].astype(np.float64).sum()
    assert rows.baseline_nll_nats[0] == -baseline.observed[:3].astype(np.float64).sum()
    assert rows.kl_top20_nats[3] == pytest.approx(metrics.kl_top20_nats(baseline, candidate)[10:].sum())
    some = rows.select(np.array([False, True, False, True]))
    assert some.row_ids == ("r1", "r3")
    assert some.tokens.tolist() == [1, 2]
    assert some.kl_top20_nats.tolist() == rows.kl_top20_nats[[1, 3]].tolist()


def test_other_rows_or_tokens_are_refused() -> None:
    baseline, candidate = pair(4, LENGTHS, 0.1)
    token_ids, top_ids = candidate.token_ids.copy(), candidate.top_ids.copy()
    token_ids[5] += 1
    top_ids[10] = top_ids[10, ::-1]
    strange = {
        "other rows": (
            {"row_ids": ("r0", "r1", "x", "r3")},
            "row r2 against x",
        ),
        "other numbers of tokens": ({"row_offsets": np.array([0, 3, 5, 10, 12])}, "row r1"),
        "other token ids": ({"token_ids": token_ids}, "row r2, scored token 1"),
        "other top tokens": ({"top_ids": top_ids}, "row r3, scored token 0"),
    }
    for what, (changes, where) in strange.items():
        with pytest.raises(Stale, match=what) as caught:
            metrics.compare(baseline, dataclasses.replace(candidate, **changes))
        assert caught.value.where == where


def test_a_missing_row_is_refused() -> None:
    baseline, _ = pair(5, [2, 2], 0)
    fewer, _ = pair(5, [2], 0)
    with pytest.raises(Stale, match="other rows") as caught:
        metrics.compare(baseline, fewer)
    assert caught.value.where == "2 rows against 1"
