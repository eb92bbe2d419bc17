"""Intervals of ratios of sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.synthetic import pair
from trtpipe.drift import metrics
from trtpipe.drift.statistics import Estimate, estimates, ratio_of_sums

LENGTHS = [4, 9, 2, 7, 5, 1, 8, 3, 6, 5, 2, 7]


def test_equal_sides_give_points() -> None:
    baseline, _ = pair(1, LENGTHS, 0)
    found = estimates(metrics.compare(baseline, baseline), confidence=0.95, resamples=400)
    assert found == {
        "kl_top20_nats": Estimate(0.0, 0.0, 0.0),
        "top1_agreement": Estimate(1.0, 1.0, 1.0),
        "perplexity_ratio": Estimate(1.0, 1.0, 1.0),
    }


def test_the_perplexity_ratio_is_that_of_the_perplexities() -> None:
    baseline, candidate = pair(2, LENGTHS, 0.7)
    ratio = estimates(metrics.compare(baseline, candidate), confidence=0.9, resamples=400)["perplexity_ratio"]
    perplexities = [np.exp(-side.observed.astype(np.float64).mean()) for side in (candidate, baseline)]
    assert ratio.value == pytest.approx(perplexities[0] / perplexities[1], rel=1e-12)
    assert ratio.low < ratio.value < ratio.high


@settings(deadline=None)  # other work may hold the cores
@given(st.integers(0, 2**31), st.permutations(range(len(LENGTHS))))
def test_the_order_of_prompts_does_not_matter(seed: int, order: list[int]) -> None:
    rows = metrics.compare(*pair(seed, LENGTHS, 0.5))
    plain = ratio_of_sums(rows.kl_top20_nats, rows.tokens, confidence=0.95, resamples=4000)
    shuffled = ratio_of_sums(rows.kl_top20_nats[order], rows.tokens[order], confidence=0.95, resamples=4000)
    assert shuffled.value == pytest.approx(plain.value, rel=1e-12)
    # other draws: the ends move by the noise of resampling only
    width = plain.high - plain.low
    assert [shuffled.low, shuffled.high] == pytest.approx([plain.low, plain.high], abs=0.2 * width)


def test_the_same_rows_give_the_same_interval() -> None:
    rows = metrics.compare(*pair(3, LENGTHS, 0.5))
    first, second = (ratio_of_sums(rows.kl_top20_nats, rows.tokens, confidence=0.95, resamples=300) for _ in range(2))
    assert first == second


def test_agrees_with_scipy() -> None:
    rng = np.random.default_rng(7)
    tokens = rng.integers(20, 80, 20)
    sums = tokens * rng.lognormal(-3, 0.6, 20)
    found = ratio_of_sums(sums, tokens, confidence=0.95, resamples=20000)
    # scipy 1.17.1: bootstrap((sums, tokens), ..., paired=True, method="BCa", n_resamples=200000, rng=0)
    low, high = 0.03511483, 0.05130542
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.015 * (high - low))


def test_prompts_are_drawn_not_tokens() -> None:
    """Two prompts of 500 equal tokens each are two pieces of evidence, not a thousand."""
    tokens = np.array([500, 500])
    found = ratio_of_sums(np.array([0.0, 500.0]), tokens, confidence=0.95, resamples=500)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_long_prompts_weigh_more() -> None:
    assert ratio_of_sums(np.array([90, 0]), np.array([90, 10]), confidence=0.95, resamples=200).value == 0.9


def test_one_prompt_that_outweighs_all_others_widens_the_interval_upwards() -> None:
    tokens = np.full(20, 50)
    sums = np.full(20, 50 * 0.01)
    sums[4] = 50 * 5.0
    found = ratio_of_sums(sums, tokens, confidence=0.95, resamples=2000)
    assert found.low == pytest.approx(0.01)
    assert found.high > 3 * found.value
    nearly_certain = ratio_of_sums(sums, tokens, confidence=1 - 1e-10, resamples=2000)
    assert nearly_certain.high >= found.high


@pytest.mark.parametrize("sums", [[3.0], [1.5, 2.5, 4.0]])
def test_rows_that_all_agree_give_a_point(sums: list[float]) -> None:
    tokens = np.array(sums) * 2
    found = ratio_of_sums(np.array(sums), tokens.astype(np.int64), confidence=0.95, resamples=200)
    assert [found.low, found.high] == [found.value, found.value] == [0.5, 0.5]


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        tokens = rng.integers(20, 80, 60)
        sums = tokens * 0.05 * rng.gamma(4, 0.25, 60)
        found = ratio_of_sums(sums, tokens, confidence=0.9, resamples=400)
        held += found.low <= 0.05 <= found.high
    assert 0.84 <= held / 200 <= 0.96
