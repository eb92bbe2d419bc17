"""Calibration errors by group and layer, from the figures ``per_layer`` of the stage calibrate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Errors:
    """Squared output errors relative to the outputs.

    ``plain_rounding``: without scales; ``awq``: with the searched scales; ``final``: after the whole recipe.
    ``alpha``: exponent of the scales; ``clipped_share`` of the groups of weights; ``damping``: share of G's mean
    diagonal that compensated rounding added to it, None without that step. ``outlier_channels``: inputs whose mean
    magnitude is over 10 times the median channel's; the largest is ``largest_over_median`` times that.
    """

    plain_rounding: float
    awq: float
    final: float
    alpha: float
    clipped_share: float
    damping: float | None
    outlier_channels: float
    largest_over_median: float

    @property
    def change(self) -> float:
        """What the recipe changed, as a share of plain rounding's error."""
        return self.final / self.plain_rounding - 1 if self.plain_rounding else 0.0


@dataclass(frozen=True)
class Family:
    """The linears of one role over the layers. ``unseen``: how many of ``count`` no calibration token reached."""

    name: str
    by_layer: dict[int, Errors]
    count: int
    unseen: int

    @property
    def mean(self) -> Errors:
        return _mean(list(self.by_layer.values()))


def families(layers: Sequence[Mapping[str, Any]]) -> list[Family]:
    """Gather the errors by role; the experts of a layer become one family, by their mean.

    Only families of which a calibration token reached some linear.
    """
    found: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for layer in layers:
        for error in layer["errors"]:
            name = re.sub(r" \d+(?= )", "", error["group"])  # "expert 3 output"
            found.setdefault(name, []).append((layer["layer"], error))
    made = (_family(name, errors) for name, errors in found.items())
    return [family for family in made if family.by_layer]


def _family(name: str, errors: list[tuple[int, Mapping[str, Any]]]) -> Family:
    seen: dict[int, list[Errors]] = {}
    for layer, error in errors:
        if error["tokens"]:
            values = Errors(**{field: error[field] for field in Errors.__dataclass_fields__})
            seen.setdefault(layer, []).append(values)
    return Family(
        name=name,
        by_layer={layer: _mean(values) for layer, values in seen.items()},
        count=len(errors),
        unseen=sum(not error["tokens"] for _, error in errors),
    )


def _mean(errors: list[Errors]) -> Errors:
    return Errors(
        plain_rounding=fmean(error.plain_rounding for error in errors),
        awq=fmean(error.awq for error in errors),
        final=fmean(error.final for error in errors),
        alpha=fmean(error.alpha for error in errors),
        clipped_share=fmean(error.clipped_share for error in errors),
        damping=max((error.damping for error in errors if error.damping is not None), default=None),
        outlier_channels=fmean(error.outlier_channels for error in errors),
        largest_over_median=max(error.largest_over_median for error in errors),
    )
