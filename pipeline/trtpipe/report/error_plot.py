"""Calibration error by layer: one panel for each family of linears, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from trtpipe.report.layer_errors import Errors, Family
from trtpipe.report.scale import Scale
from trtpipe.report.svg import drawing, element
from trtpipe.report.wording import percent

WIDTH, HEIGHT = 480, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 34
LAYER_TICKS_ABOUT = 6


@dataclass(frozen=True)
class Panel:
    """A family with its plot."""

    family: Family
    plot: Markup


def panels(families: Sequence[Family]) -> list[Panel]:
    """Draw every family; a larger error is higher."""
    errors = [errors for family in families for errors in family.by_layer.values()]
    highest = max(max(error.plain_rounding, error.awq, error.final) for error in errors)
    vertical = Scale(0.0, (highest or 1.0) * 100 * 1.05, HEIGHT - BOTTOM, TOP)
    last = max(layer for family in families for layer in family.by_layer)
    horizontal = Scale(-0.5, last + 0.5, LEFT, WIDTH - RIGHT)
    frame = _frame(last, horizontal, vertical)
    return [Panel(family, _plot(family, frame, horizontal, vertical)) for family in families]


def _plot(family: Family, frame: list[Markup], horizontal: Scale, vertical: Scale) -> Markup:
    mean = family.mean
    label = (
        f"{family.name}: output error by layer, mean {percent(mean.plain_rounding)} with plain rounding, "
        f"{percent(mean.final)} after the recipe; all values are in the table below"
    )
    marks = [_layer(layer, errors, horizontal.at(layer), vertical) for layer, errors in family.by_layer.items()]
    return drawing(WIDTH, HEIGHT, label, *frame, *marks)


def _layer(layer: int, errors: Errors, x: float, vertical: Scale) -> Markup:
    """Draw one layer: ring for plain rounding, dash for AWQ's scales alone, disc for what the recipe left."""
    plain, awq, final = (vertical.at(error * 100) for error in (errors.plain_rounding, errors.awq, errors.final))
    text = (
        f"layer {layer}: plain rounding {percent(errors.plain_rounding)}, AWQ scales {percent(errors.awq)}, "
        f"final {percent(errors.final)}, alpha {errors.alpha:.2g}"
    )
    return element(
        "g",
        element("title", text),
        element("line", class_="gain", x1=x, x2=x, y1=plain, y2=final),
        element("line", class_="awq-point", x1=x - 4, x2=x + 4, y1=awq, y2=awq),
        element("circle", class_="plain-point", cx=x, cy=plain, r=3),
        element("circle", class_="final-point", cx=x, cy=final, r=3),
    )


def _frame(last: int, horizontal: Scale, vertical: Scale) -> list[Markup]:
    """Draw the axes: per cent up, layers to the right."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [
        element(
            "g",
            element("line", class_="grid", x1=LEFT, x2=right, y1=vertical.at(tick), y2=vertical.at(tick)),
            element("text", f"{text} %", x=LEFT - 6, y=vertical.at(tick) + 4, text_anchor="end"),
        )
        for tick, text in vertical.ticks()
    ]
    layers = [
        element("text", str(layer), x=horizontal.at(layer), y=bottom + 15, text_anchor="middle")
        for layer in range(0, last + 1, -(-(last + 1) // LAYER_TICKS_ABOUT))
    ]
    name = element("text", "layer", x=(LEFT + right) / 2, y=HEIGHT - 4, text_anchor="middle")
    return [*lines, element("line", class_="tick", x1=LEFT, x2=right, y1=bottom, y2=bottom), *layers, name]
