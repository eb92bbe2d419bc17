"""One quantity over the layers, a line for each series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from trtpipe.report import layer_frame
from trtpipe.report.layer_frame import HEIGHT, WIDTH
from trtpipe.report.svg import drawing, element
from trtpipe.report.wording import number

STYLES = 6  # line styles in page.css


@dataclass(frozen=True)
class Lines:
    """A quantity drawn; ``legend``: series and the class of its line, none where there is one series only."""

    title: str
    meaning: str
    legend: list[tuple[str, str]]
    plot: Markup


def lines(title: str, meaning: str, unit: str, series: Mapping[str, Mapping[int, float]]) -> Lines | None:
    """Draw values by layer; None where there are none."""
    drawn = {name: values for name, values in series.items() if values}
    if not drawn:
        return None
    last = max(layer for values in drawn.values() for layer in values)
    highest = max(value for values in drawn.values() for value in values.values())
    vertical, horizontal = layer_frame.up_to(highest), layer_frame.over_layers(last)
    styles = {name: f"series-{index % STYLES}" for index, name in enumerate(drawn)}
    marks = []
    for name, values in drawn.items():
        points = [(horizontal.at(layer), vertical.at(value)) for layer, value in values.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks.append(element("polyline", class_=f"series {styles[name]}", points=path))
        marks += [
            element("circle", element("title", f"{name}, layer {layer}: {number(value)}{unit}"), class_="dot",
                    cx=x, cy=y, r=2)
            for (x, y), (layer, value) in zip(points, values.items(), strict=True)
        ]  # fmt: skip
    words = ", ".join(f"{name} {number(min(v.values()))} to {number(max(v.values()))}" for name, v in drawn.items())
    plot = drawing(
        WIDTH, HEIGHT, f"{title} by layer: {words}{unit}", *layer_frame.draw(last, horizontal, vertical, unit), *marks
    )
    return Lines(title, meaning, list(styles.items()) if len(styles) > 1 else [], plot)
