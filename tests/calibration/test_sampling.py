"""Intervals hold what they promise, distances are the textbook's."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.calibration import sampling
from trtpipe.calibration.sampling import Sample

COUNTS = st.dictionaries(st.integers(0, 9), st.integers(1, 50), min_size=1)


def test_about_95_of_100_intervals_hold_the_share_and_the_quantiles() -> None:
    rng = random.Random(3)  # noqa: S311 - reproducible, nothing secret
    log = [rng.randint(1, 2000) for _ in range(4000)]
    truth = sum(value < 300 for value in log) / len(log)
    ordered_log = sorted(log)
    held = {"share": 0, "p50": 0, "p95": 0}
    for _ in range(300):
        drawn = sorted(rng.sample(log, 800))
        sample = Sample(800, 4000)
        share = sample.share(sum(value < 300 for value in drawn))
        held["share"] += share.low <= truth <= share.high
        for name, part in (("p50", 0.5), ("p95", 0.95)):
            found = sample.quantile(drawn, part)
            held[name] += found.low <= ordered_log[round(part * 3999)] <= found.high
    assert all(275 <= count <= 300 for count in held.values()), held


def test_the_whole_log_has_no_sampling_error() -> None:
    sample = Sample(10, 10)
    assert sample.share(3) == sampling.Estimate(0.3, 0.3, 0.3)
    assert sample.quantile(range(10), 0.5).low == sample.quantile(range(10), 0.5).high


@given(COUNTS, COUNTS)
def test_distances_are_symmetric_and_within_0_and_1(ours: dict[int, int], theirs: dict[int, int]) -> None:
    for distance in (sampling.jensen_shannon, sampling.binned_kolmogorov_smirnov):
        there, back = distance(ours, theirs), distance(theirs, ours)
        assert there == pytest.approx(back)
        assert -1e-12 <= there <= 1 + 1e-12
        assert distance(ours, {name: 3 * count for name, count in ours.items()}) == pytest.approx(0, abs=1e-12)
    values = [[name for name, count in found.items() for _ in range(count)] for found in (ours, theirs)]
    assert sampling.kolmogorov_smirnov(*values) == pytest.approx(sampling.binned_kolmogorov_smirnov(ours, theirs))


def test_known_distances() -> None:
    assert sampling.jensen_shannon({"a": 1}, {"b": 1}) == pytest.approx(1)
    assert sampling.jensen_shannon({"a": 1, "b": 1}, {"a": 1}) == pytest.approx(0.311278, abs=1e-6)
    assert sampling.kolmogorov_smirnov([1, 2, 3, 4], [3, 4, 5, 6]) == pytest.approx(0.5)
