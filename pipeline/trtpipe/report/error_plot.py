"""Calibration error by layer: one panel for each family of linears, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from trtpipe.report import layer_frame
from trtpipe.report.layer_errors import Errors, Family
from trtpipe.report.layer_frame import HEIGHT, WIDTH
from trtpipe.report.scale import Scale
from trtpipe.report.svg import drawing, element
from trtpipe.report.wording import percent


@dataclass(frozen=True)
class Panel:
    """A family with its plot."""

    family: Family
    plot: Markup


def panels(families: Sequence[Family]) -> list[Panel]:
    """Draw every family; a larger error is higher. A quantizer that reports no errors gives no family."""
    if not families:
        return []
    errors = [errors for family in families for errors in family.by_layer.values()]
    highest = max(max(error.plain_rounding, error.awq, error.final) for error in errors)
    last = max(layer for family in families for layer in family.by_layer)
    vertical, horizontal = layer_frame.up_to(highest * 100), layer_frame.over_layers(last)
    frame = layer_frame.draw(last, horizontal, vertical, " %")
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
