"""The calibration plot."""

from __future__ import annotations

import re

from report.synthetic import error, layers
from trtpipe.report.error_plot import panels
from trtpipe.report.layer_errors import families


def heights(kind: str, plot: str) -> list[float]:
    return [float(y) for y in re.findall(rf'<circle class="{kind}-point" cx="[\d.]+" cy="([\d.]+)"', plot)]


def test_values_are_told_in_words() -> None:
    first, _ = panels(families(layers()))
    assert "<title>layer 1: plain rounding 2.40 %, AWQ scales 1.20 %, final 0.800 %, alpha 0.3</title>" in first.plot


def test_panels_share_their_scale() -> None:
    first, second = panels(families(layers()))
    assert heights("plain", second.plot) == heights("final", second.plot)
    assert heights("plain", first.plot) > heights("plain", second.plot), "the smaller error is lower: a larger y"
    assert heights("final", first.plot) > heights("plain", first.plot)


def test_no_error_at_all_is_on_the_axis() -> None:
    (panel,) = panels(families([{"layer": 0, "errors": [error("mlp input", 0.0, 0.0, 0.0)]}]))
    assert heights("plain", panel.plot) == [176]
