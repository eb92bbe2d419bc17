"""The calibration plot."""

from __future__ import annotations

import re

from report.synthetic import layers
from trtpipe.report.error_plot import panels


def test_a_panel_for_each_group_with_its_means() -> None:
    first, second = panels(layers())
    assert (first.group, second.group) == ("attention input", "mlp output")
    assert round(first.plain_rounding_mean, 6) == 0.018
    assert round(first.change, 6) == round(-2 / 3, 6)
    assert second.change == 0
    assert "layer 1: plain rounding 2.40 %, AWQ 0.800 %, alpha 0.3" in first.plot


def test_panels_share_their_scale() -> None:
    first, second = panels(layers())

    def heights(kind: str, plot: str) -> list[float]:
        return [float(y) for y in re.findall(rf'<circle class="{kind}-point" cx="[\d.]+" cy="([\d.]+)"', plot)]

    assert heights("plain", second.plot) == heights("awq", second.plot)
    assert heights("plain", first.plot) > heights("plain", second.plot), "the smaller error is lower: a larger y"
    assert heights("awq", first.plot) > heights("plain", first.plot)


def test_no_error_at_all() -> None:
    exact = layers()
    for layer in exact:
        for error in layer["errors"]:
            error |= {"plain_rounding": 0.0, "awq": 0.0}
    assert [panel.change for panel in panels(exact)] == [0, 0]
