"""Calibration error by layer: one panel for each group of linears that share a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from trtpipe.report.scale import Scale
from trtpipe.report.svg import drawing, element
from trtpipe.report.wording import percent

WIDTH, HEIGHT = 480, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 34
LAYER_TICKS_ABOUT = 6


@dataclass(frozen=True)
class Panel:
    """A group's plot and the means over its layers."""

    group: str
    plain_rounding_mean: float
    awq_mean: float
    plot: Markup

    @property
    def change(self) -> float:
        """The mean's change, as a share of plain rounding's."""
        return self.awq_mean / self.plain_rounding_mean - 1 if self.plain_rounding_mean else 0.0


def panels(layers: Sequence[Mapping[str, Any]]) -> list[Panel]:
    """Draw every group of ``layers`` on one common scale.

    ``layers``: figures ``per_layer`` of the stage calibrate, errors as relative squared output errors.
    """
    highest = max(error[kind] for layer in layers for error in layer["errors"] for kind in ("plain_rounding", "awq"))
    vertical = Scale(0.0, (highest or 1.0) * 100 * 1.05, HEIGHT - BOTTOM, TOP)
    groups: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for layer in layers:
        for error in layer["errors"]:
            groups.setdefault(error["group"], []).append((layer["layer"], error))
    horizontal = Scale(-0.5, max(layer["layer"] for layer in layers) + 0.5, LEFT, WIDTH - RIGHT)
    return [_panel(group, errors, horizontal, vertical) for group, errors in groups.items()]


def _panel(group: str, errors: list[tuple[int, Mapping[str, Any]]], horizontal: Scale, vertical: Scale) -> Panel:
    means = [sum(error[kind] for _, error in errors) / len(errors) for kind in ("plain_rounding", "awq")]
    label = (
        f"{group}: output error by layer, mean {percent(means[0])} with plain rounding, {percent(means[1])} with AWQ; "
        "all values are in the table below"
    )
    marks = [_layer(index, error, horizontal, vertical) for index, error in errors]
    plot = drawing(WIDTH, HEIGHT, label, *_axes(errors, horizontal, vertical), *marks)
    return Panel(group, means[0], means[1], plot)


def _layer(index: int, error: Mapping[str, Any], horizontal: Scale, vertical: Scale) -> Markup:
    """Draw one layer: ring for plain rounding, disc for AWQ, a line for what lies between."""
    x = horizontal.at(index)
    plain, awq = (vertical.at(error[kind] * 100) for kind in ("plain_rounding", "awq"))
    text = (
        f"layer {index}: plain rounding {percent(error['plain_rounding'])}, AWQ {percent(error['awq'])}, "
        f"alpha {error['alpha']:g}"
    )
    return element(
        "g",
        element("title", text),
        element("line", class_="gain", x1=x, x2=x, y1=plain, y2=awq),
        element("circle", class_="plain-point", cx=x, cy=plain, r=3),
        element("circle", class_="awq-point", cx=x, cy=awq, r=3),
    )


def _axes(errors: list[tuple[int, Mapping[str, Any]]], horizontal: Scale, vertical: Scale) -> list[Markup]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [
        element(
            "g",
            element("line", class_="grid", x1=LEFT, x2=right, y1=vertical.at(tick), y2=vertical.at(tick)),
            element("text", f"{text} %", x=LEFT - 6, y=vertical.at(tick) + 4, text_anchor="end"),
        )
        for tick, text in vertical.ticks()
    ]
    every = max(1, -(-len(errors) // LAYER_TICKS_ABOUT))
    layers = [
        element("text", str(index), x=horizontal.at(index), y=bottom + 15, text_anchor="middle")
        for index, _ in errors[::every]
    ]
    name = element("text", "layer", x=(LEFT + right) / 2, y=HEIGHT - 4, text_anchor="middle")
    return [*lines, element("line", class_="tick", x1=LEFT, x2=right, y1=bottom, y2=bottom), *layers, name]
