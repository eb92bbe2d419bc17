"""What holds for every page: it loads nothing, escapes everything, is whole, the same each time, and legible."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

import pytest

from report.pages import Elements, drift_page, overview_page, quality_page

HOSTILE = "</bdi><script>alert(1)</script><img src=//x.test/ onerror='a()'>\" onclick=\"b()"
PAGES = {"drift": drift_page, "overview": overview_page, "quality": quality_page}
TEXT_ON_GROUND = [
    *((ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("paper", "sunk", "ground")),
    *((tone, f"{tone}-soft") for tone in ("pass", "fail", "inconclusive")),
]
MARK_ON_GROUND = [
    *((tone, ground) for tone in ("pass", "fail", "inconclusive", "ink") for ground in ("paper", "beyond")),
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("segment", ["coding", HOSTILE])
def test_a_page_loads_nothing_and_runs_nothing(page: str, segment: str) -> None:
    text = PAGES[page](segment=segment)
    elements = Elements(text)
    assert not elements.open
    tags = {tag for tag, _ in elements.found}
    assert not tags & {"script", "img", "iframe", "object", "embed", "image", "use", "form", "base", "audio", "video"}
    assert [attributes["href"] for tag, attributes in elements.found if tag == "link"] == ["data:,"]
    for href in elements.attributes("href"):
        assert href is not None
        assert href == "data:," or not re.match(r"/|\\|[a-z][a-z0-9+.-]*:", href, re.IGNORECASE), href
    names = {name for _, attributes in elements.found for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "srcset", "xlink:href", "background", "poster", "ping"}
    style = text[text.index("<style>") : text.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style


@pytest.mark.parametrize("page", PAGES)
def test_names_from_the_log_are_text(page: str) -> None:
    text = PAGES[page](segment=HOSTILE)
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize("page", [overview_page, quality_page])
def test_notes_are_text(page: Callable[..., str]) -> None:
    text = page(note=HOSTILE)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("page", PAGES)
def test_the_same_input_gives_the_same_bytes(page: str) -> None:
    assert PAGES[page]() == PAGES[page]()


@pytest.mark.parametrize("page", PAGES)
def test_references_inside_a_page_lead_somewhere_once(page: str) -> None:
    elements = Elements(PAGES[page]())
    ids = elements.attributes("id")
    assert len(ids) == len(set(ids))
    anchors = [href[1:] for href in elements.attributes("href") if href and href.startswith("#")]
    assert set(ids) >= {*anchors, *elements.attributes("aria-labelledby")}


@pytest.mark.parametrize("page", PAGES)
def test_every_drawing_has_words_or_is_decoration(page: str) -> None:
    drawings = [attributes for tag, attributes in Elements(PAGES[page]()).found if tag == "svg"]
    assert drawings
    assert all(drawing.get("aria-label") or drawing.get("aria-hidden") == "true" for drawing in drawings)


@pytest.mark.parametrize("palette", [0, 1], ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(palette: int) -> None:
    style = (files("trtpipe.report") / "templates" / "page.css").read_text("utf-8")
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", re.findall(r":root \{([^}]*)\}", style)[palette]))
    too_weak = [
        (front, back)
        for pairs, least in ((TEXT_ON_GROUND, 4.5), (MARK_ON_GROUND, 3.0))
        for front, back in pairs
        if contrast(colours[front], colours[back]) < least
    ]
    assert too_weak == []


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_contrast_is_measured_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
