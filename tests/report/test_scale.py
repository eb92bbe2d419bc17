"""Axes."""

from __future__ import annotations

import math

import pytest

from trtpipe.report.scale import Scale, covering


def test_pixels() -> None:
    scale = Scale(0.0, 2.0, 10.0, 110.0)
    assert [scale.at(value) for value in (0, 1, 2, 5, -1, None, math.inf)] == [10, 60, 110, 110, 10, 110, 110]
    assert Scale(0.0, 1.0, 100.0, 0.0).at(0.25) == 75


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 1.0, ["0.0", "0.5", "1.0"]),
        (0.17, 0.47, ["0.2", "0.3", "0.4"]),
        (1.23, 1.65, ["1.3", "1.4", "1.5", "1.6"]),
        (0.0, 9000.0, ["0", "2,000", "4,000", "6,000", "8,000"]),
        (0.00012, 0.00031, ["0.00015", "0.00020", "0.00025", "0.00030"]),
    ],
)
def test_ticks_are_round(low: float, high: float, labels: list[str]) -> None:
    assert [label for _, label in Scale(low, high, 0, 1).ticks()] == labels


def test_a_margin_is_left_and_what_is_not_finite_is_left_out() -> None:
    scale = covering([1.0, None, math.inf, 2.0], 0, 100)
    assert (scale.low, scale.high) == pytest.approx((0.94, 2.06))


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_one_value_alone_is_in_the_middle(value: float) -> None:
    assert covering([value], 0, 100).at(value) == pytest.approx(50)
