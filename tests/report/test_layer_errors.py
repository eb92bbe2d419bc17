"""Calibration errors, gathered by role."""

from __future__ import annotations

import pytest

from report.synthetic import error, layers
from trtpipe.report.layer_errors import families

UNSEEN = {"group": "expert 1 output", "tokens": 0, "alpha": 0.0, "plain_rounding": None, "awq": None, "final": None,
          "clipped_share": 0.0, "damping": None, "outlier_channels": 0, "largest_over_median": 2.0}  # fmt: skip


def test_a_family_for_each_group_with_its_means() -> None:
    first, second = families(layers())
    assert (first.name, second.name) == ("attention input", "mlp output")
    assert first.by_layer[1].plain_rounding == 0.024
    assert first.mean.plain_rounding == pytest.approx(0.018)
    assert first.mean.change == pytest.approx(-2 / 3)
    assert (second.mean.change, second.unseen) == (0, 0)


def test_experts_are_one_family_without_those_that_saw_nothing() -> None:
    experts = [error("expert 0 output", 0.02, 0.01, 0.01), UNSEEN, error("expert 12 output", 0.04, 0.03, 0.02)]
    (family,) = families([{"layer": 0, "errors": experts}, {"layer": 1, "errors": [UNSEEN]}])
    assert (family.name, family.count, family.unseen) == ("expert output", 4, 2)
    assert family.by_layer.keys() == {0}
    assert family.by_layer[0].final == pytest.approx(0.015)


def test_a_group_that_no_token_reached_is_left_out() -> None:
    assert families([{"layer": 0, "errors": [UNSEEN]}]) == []


def test_no_error_at_all_is_no_change() -> None:
    (family,) = families([{"layer": 0, "errors": [error("mlp input", 0.0, 0.0, 0.0)]}])
    assert family.mean.change == 0
