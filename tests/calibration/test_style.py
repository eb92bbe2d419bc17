"""What a prompt looks like, and the segment that is derived from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibration.tiny import row
from trtpipe.calibration import segments, style
from trtpipe.calibration.row import Message, Row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is it?", {"question": True, "language": "latin", "words": 3, "lines": 1}),
        ("请把这句话翻译成英文。", {"language": "zh", "question": False}),
        ("これは何ですか？", {"language": "ja", "question": True}),
        ("한국어로 답해 주세요", {"language": "ko"}),
        ("Что это такое?", {"language": "cyrillic"}),
        ("def f(x):\n    return x", {"code": True, "lines": 2}),
        ("Explain ```ls -la```", {"code": True}),
        ("SELECT a FROM b", {"code": True}),
        ("Answer in JSON, please", {"json": True, "code": False}),
        ("- one\n- two", {"list_items": True}),
        ("A1b2", {"digits_share": 0.5, "capitals_share": 0.25}),
        ("", {"language": "latin", "words": 0, "digits_share": 0.0}),
    ],
)
def test_the_style_of_a_prompt(text: str, expected: dict[str, Any]) -> None:
    found = style.of(row(text)).document()
    assert {name: found[name] for name in expected} == expected


def test_the_system_prompt_is_not_the_requests_style() -> None:
    system = Message("system", "def f(x): return JSON?")
    found = style.of(replace(row("hello"), messages=(system, *row("hello").messages)))
    assert (found.system_prompt, found.code, found.json, found.question) == (True, False, False, False)


def derived(one: Row) -> str:
    return segments.derive(one, style.of(one))


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (row("Please translate this into French: hello"), "translation"),
        (row("总结下面的文章"), "summary zh"),
        (row("Extract the names as JSON"), "extraction"),
        (row("def f(x):\n    return x"), "coding"),
        (row('{"a": 1} is what?'), "json"),
        (row("How many are left?"), "calculation"),
        (row("hello there"), "plain"),
        (row("hello", "and", "again"), "chat, many turns"),
        (replace(row("hello"), tools="[{}]"), "tools"),
    ],
)
def test_a_derived_segment(one: Row, name: str) -> None:
    assert derived(one) == name


def test_given_segments_stay_and_small_derived_ones_become_other() -> None:
    rows = [row("translate", segment="mine"), *[row("translate it")] * 3, row("hello there")]
    looks = [style.of(one) for one in rows]
    assert segments.assign(rows, looks, rows_min=2) == ["mine", *["translation"] * 3, "other"]
    assert segments.assign(rows[1:], looks[1:], rows_min=4) == ["all"] * 4
