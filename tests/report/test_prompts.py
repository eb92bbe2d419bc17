"""The prompt report."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from report.pages import Elements
from report.prompt_document import document
from trtpipe.report import prompts
from trtpipe.report.histogram import histogram


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden("report/prompts.html", prompts.page(document()))


def test_what_was_counted_is_on_the_page() -> None:
    page = prompts.page(document())
    for said in (
        "1,000 rows of prompts",
        "dropped: exact duplicate",
        "a&amp;b.jsonl:2:1",
        "120 of 128 calibration prompts",
        "chat &lt;b&gt;",
        "masked in 7 rows: email 9",
        "counted",
    ):
        assert said in page


@pytest.mark.parametrize("changes", [{}, {"selection": False}, {"whole_log": True}, {"segment": "general"}])
def test_what_opens_is_closed_and_nothing_is_loaded(changes: dict[str, bool]) -> None:
    elements = Elements(prompts.page(document(**changes)))  # type: ignore[arg-type]
    assert elements.open == []
    assert elements.attributes("href") == ["data:,"]
    assert elements.attributes("src") == []
    assert {tag for tag, _ in elements.found}.isdisjoint({"script", "img", "iframe"})


def test_intervals_are_shown_only_where_there_is_a_sampling_error() -> None:
    assert "95 % interval" in prompts.page(document())
    assert "95 % interval" not in prompts.page(document(whole_log=True))


def test_text_of_prompts_is_shown_only_if_given() -> None:
    assert "Examples" not in prompts.page(document())
    page = prompts.page(document(), {"chat": ["What <is> it?"]})
    assert "What &lt;is&gt; it?" in page


def test_a_histogram_says_its_numbers() -> None:
    drawn = histogram({16: 1, 32: 3}, "prompt lengths")
    assert "from 32: 3 (75.0%)" in drawn
    assert 'aria-label="prompt lengths: 4 rows, from 16 to 32 and more, most of them from 32"' in drawn
