"""The drift report."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from report import synthetic
from report.pages import drift_page
from trtpipe.report import drift


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden("report/drift.html", drift_page())


def test_what_was_compared_is_in_full() -> None:
    page = drift_page()
    for said in ("a" * 64, "b" * 64, "c" * 64, "vllm 1.2", "fp8_e4m3", "avx512f amx_tile", "a test &amp; nothing else"):
        assert said in page


def test_the_checks_are_counted() -> None:
    assert "Of 6 checks 4 passed, 1 failed and 1 was inconclusive." in drift_page()


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("pass", "may be promoted"), ("fail", "must not be promoted"), ("inconclusive", "the evidence does not decide")],
)
def test_the_outcome_is_said_in_words(outcome: str, said: str) -> None:
    assert said in drift_page(outcome=outcome)


def test_a_segment_may_be_called_like_the_first_row() -> None:
    assert drift_page(segment=drift.ALL_PROMPTS).count(f"<bdi>{drift.ALL_PROMPTS}</bdi>") == 4


@pytest.mark.parametrize("missing", [None, float("inf")])
def test_what_is_not_finite_is_said_and_drawn_at_the_edge(missing: float | None) -> None:
    verdict = synthetic.verdict()
    beyond = {"value": missing, "high": missing, "excess": missing}
    verdict["overall"]["kl_top20_nats"] |= beyond
    page = drift.page(verdict)
    assert "not finite" in page
    assert "nan" not in page
    assert "Infinity" not in page


def test_a_metric_without_words_keeps_its_name() -> None:
    assert drift.explained("new_metric").title == "new_metric"
