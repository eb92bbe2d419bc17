"""The drawings of the tables."""

from __future__ import annotations

import pytest

from report.synthetic import finding
from trtpipe.report import svg
from trtpipe.report.scale import Scale

SCALE = Scale(0.0, 1.0, 0.0, 100.0)


def test_elements_escape_what_they_are_given() -> None:
    assert svg.element("text", "<b>", text_anchor='"', x=1.50) == '<text text-anchor="&#34;" x="1.5">&lt;b&gt;</text>'


@pytest.mark.parametrize(
    ("outcome", "shape"),
    [("pass", '<circle class="mark"'), ("fail", '<rect class="mark" x='), ("inconclusive", 'transform="rotate(45')],
)
def test_the_marks_shape_says_the_outcome(outcome: str, shape: str) -> None:
    assert shape in svg.interval("all", finding("kl_top20_nats", 0.5, 0.6, outcome), SCALE)


def test_the_side_beyond_the_limit_is_shaded() -> None:
    above = svg.interval("all", finding("kl_top20_nats", 0.5, 0.6), SCALE)
    assert f'<rect class="beyond" x="60" y="0" width="{svg.WIDTH - 60}"' in above
    below = svg.interval("all", finding("top1_agreement", 0.5, 0.4), SCALE)
    assert '<rect class="beyond" x="0" y="0" width="40"' in below


def test_an_interval_is_told_in_words() -> None:
    drawn = svg.interval("code", finding("kl_top20_nats", 0.5, 0.6), SCALE)
    assert 'aria-label="code: 0.5, interval 0.49 to 0.52, limit at most 0.6: pass"' in drawn
    assert '<line x1="49" x2="52" y1="15" y2="15">' in drawn


def test_a_bar_is_never_invisible() -> None:
    assert 'class="bar built" width="1.5"' in svg.bar(0.0, "0 s", "built")
    assert 'class="bar built" width="60"' in svg.bar(0.5, "1 s", "built")
