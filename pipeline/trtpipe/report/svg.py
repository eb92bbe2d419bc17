"""SVG elements as markup, and the small drawings of the tables. Colours come from the page's style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from trtpipe.report.scale import Scale
from trtpipe.report.wording import number

WIDTH = 264
ROW_HEIGHT = 30
AXIS_HEIGHT = 22
INSET = 10
BAR_WIDTH, BAR_HEIGHT = 120, 10
MARK = 5.5
BOUND_WORDS = {"max": "at most", "min": "at least"}


def element(tag: str, *children: Markup | str, **attributes: float | str) -> Markup:
    """Return one element; ``class_`` is class, other underscores are hyphens."""
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _plain(value))
        for name, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(tag, written, Markup("").join(children))


def drawing(width: float, height: float, label: str, *children: Markup, **attributes: float | str) -> Markup:
    """Return an image of this size that is read out as ``label``."""
    box = Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}"').format(
        label, *map(_plain, (width, height, width, height))
    )
    inside = element("g", *children, **attributes)
    return box + Markup(">") + inside + Markup("</svg>")


def interval(scope: str, finding: Mapping[str, Any], scale: Scale) -> Markup:
    """Draw a finding: its limit with the side beyond it shaded, the interval as a whisker, the value as a mark.

    The mark's shape says the outcome: disc pass, square fail, diamond inconclusive.
    """
    middle = ROW_HEIGHT / 2
    limit, low, high = (scale.at(finding[name]) for name in ("limit", "low", "high"))
    beyond, edge = (limit, WIDTH) if finding["bound"] == "max" else (0.0, limit)
    label = (
        f"{scope}: {number(finding['value'])}, interval {number(finding['low'])} to {number(finding['high'])}, "
        f"limit {BOUND_WORDS[finding['bound']]} {number(finding['limit'])}: {finding['outcome']}"
    )
    grid = [
        element("line", class_="grid", x1=scale.at(tick), x2=scale.at(tick), y1=0, y2=ROW_HEIGHT)
        for tick, _ in scale.ticks()
    ]
    caps = [element("line", x1=end, x2=end, y1=middle - 4, y2=middle + 4) for end in (low, high)]
    whisker = element("g", element("line", x1=low, x2=high, y1=middle, y2=middle), *caps, class_="whisker")
    return drawing(
        WIDTH,
        ROW_HEIGHT,
        label,
        element("rect", class_="beyond", x=beyond, y=0, width=edge - beyond, height=ROW_HEIGHT),
        *grid,
        element("line", class_="limit", x1=limit, x2=limit, y1=0, y2=ROW_HEIGHT),
        whisker,
        _mark(finding["outcome"], scale.at(finding["value"]), middle),
        class_=finding["outcome"],
    )


def axis(scale: Scale, label: str) -> Markup:
    """Draw the ticks over a column of intervals."""
    ticks = [
        element(
            "g",
            element("line", class_="tick", x1=scale.at(tick), x2=scale.at(tick), y1=AXIS_HEIGHT - 5, y2=AXIS_HEIGHT),
            element("text", text, x=scale.at(tick), y=AXIS_HEIGHT - 9, text_anchor="middle"),
        )
        for tick, text in scale.ticks()
    ]
    return drawing(WIDTH, AXIS_HEIGHT, label, *ticks)


def bar(share: float, label: str, kind: str) -> Markup:
    """Draw a share of 1 as a bar."""
    return drawing(
        BAR_WIDTH,
        BAR_HEIGHT,
        label,
        element("rect", class_="track", width=BAR_WIDTH, height=BAR_HEIGHT, rx=2),
        element("rect", class_=f"bar {kind}", width=max(share * BAR_WIDTH, 1.5), height=BAR_HEIGHT, rx=2),
    )


def _mark(outcome: str, x: float, y: float) -> Markup:
    if outcome == "pass":
        return element("circle", class_="mark", cx=x, cy=y, r=MARK)
    square = {"x": x - MARK, "y": y - MARK, "width": 2 * MARK, "height": 2 * MARK}
    if outcome == "fail":
        return element("rect", class_="mark", **square)
    return element("rect", class_="mark", transform=f"rotate(45 {_plain(x)} {_plain(y)})", **square)


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
