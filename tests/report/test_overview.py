"""The run overview."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from report.pages import overview_page

RELEASE = "0123456789abcdef"


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden("report/overview.html", overview_page())


@pytest.mark.parametrize(
    ("outcome", "current", "said"),
    [
        ("pass", RELEASE, "passed the drift check and is the current release"),
        ("fail", RELEASE, "on the strength of an earlier verdict"),
        ("fail", "another", 'release <span class="digest">another</span> stays'),
        ("inconclusive", None, "It is not current, and no release is."),
    ],
)
def test_which_release_is_current(outcome: str, current: str | None, said: str) -> None:
    assert said in overview_page(current=current, outcome=outcome)


def test_stages_say_why() -> None:
    page = overview_page()
    assert f"same inputs and parameters ({RELEASE})" in page
    assert "parameters.group_size 128 -&gt; 64" in page
    assert "3 of 4 stages were built in this run and 1 reused, in 6.0 s." in page


def test_links_are_relative_to_the_page() -> None:
    page = overview_page()
    assert f'href="../triton_repo/verdicts/{RELEASE}/verdict.html"' in page
    assert "/workspace" not in page
