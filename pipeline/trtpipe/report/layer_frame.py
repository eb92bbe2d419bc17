"""The frame that all plots over a model's layers share: layers to the right, a quantity up from zero."""

from __future__ import annotations

from markupsafe import Markup

from trtpipe.report.scale import Scale
from trtpipe.report.svg import element

WIDTH, HEIGHT = 480, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 34
LAYER_TICKS_ABOUT = 6


def up_to(highest: float) -> Scale:
    """Return the vertical scale for values from zero to ``highest``."""
    return Scale(0.0, (highest or 1.0) * 1.05, HEIGHT - BOTTOM, TOP)


def over_layers(last: int) -> Scale:
    """Return the horizontal scale for layers 0 to ``last``."""
    return Scale(-0.5, last + 0.5, LEFT, WIDTH - RIGHT)


def draw(last: int, horizontal: Scale, vertical: Scale, unit: str) -> list[Markup]:
    """Draw both axes; ``unit`` follows each number, as " %" does."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [
        element(
            "g",
            element("line", class_="grid", x1=LEFT, x2=right, y1=vertical.at(tick), y2=vertical.at(tick)),
            element("text", f"{text}{unit}", x=LEFT - 6, y=vertical.at(tick) + 4, text_anchor="end"),
        )
        for tick, text in vertical.ticks()
    ]
    layers = [
        element("text", str(layer), x=horizontal.at(layer), y=bottom + 15, text_anchor="middle")
        for layer in range(0, last + 1, -(-(last + 1) // LAYER_TICKS_ABOUT))
    ]
    name = element("text", "layer", x=(LEFT + right) / 2, y=HEIGHT - 4, text_anchor="middle")
    return [*lines, element("line", class_="tick", x1=LEFT, x2=right, y1=bottom, y2=bottom), *layers, name]
