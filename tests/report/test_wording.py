"""Numbers as a person reads them."""

from __future__ import annotations

import math

import pytest

from trtpipe.report import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [(66364, "66,364"), (0.30, "0.3"), (1.31549, "1.315"), (12345.6, "12,346"), (0, "0"), (None, "not finite")],
)
def test_numbers(value: float | None, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.3, "0.3000"), (1.0, "1.000"), (999.96, "1000"), (12345.6, "12,346"), (math.inf, "not finite")],
)
def test_measured_numbers_keep_their_zeros(value: float, text: str) -> None:
    assert wording.measured(value) == text


def test_margins() -> None:
    told = [wording.margin(excess) for excess in (0.0029, -0.0641, 0.0, math.nan)]
    assert told == ["beyond by 0.0029", "inside by 0.064", "inside by 0", "distance not finite"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "yes"),
        ("", "(empty)"),
        ([2, 3], "2, 3"),
        ([], "none"),
        ({"a_b": 1, "c": 0.5}, "a_b 1, c 0.5"),
        ([{"rows": 210}, {"rows": 20}], "rows 210; rows 20"),
    ],
)
def test_figures_of_any_kind(value: object, text: str) -> None:
    assert wording.shown(value) == text


def test_units() -> None:
    assert [wording.duration(seconds) for seconds in (0.13, 59.4, 59.6, 285.9)] == [
        "0.1 s",
        "59.4 s",
        "1 min 00 s",
        "4 min 46 s",
    ]
    assert [wording.size(count) for count in (0, 1023, 1024, 3 * 2**20)] == ["0 B", "1023 B", "1.0 KiB", "3.0 MiB"]
    assert wording.percent(1.0) == "100 %"
    assert wording.percent(0.004) == "0.400 %"
    assert wording.change(-0.52) == "−52 %"
    assert wording.moment("2026-11-29T17:43:13.896+00:00") == "2026-11-29 17:43 UTC"
