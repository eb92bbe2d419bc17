"""The calibration quality report: what quantizing cost, by layer, and on held-out prompts; as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtpipe.report import drift
from trtpipe.report.error_plot import panels
from trtpipe.report.layer_errors import Family, families
from trtpipe.report.layer_lines import Lines, lines
from trtpipe.report.page import render

if TYPE_CHECKING:
    from trtpipe.core.artifacts import Record

PER_LAYER = "per_layer"
FP8_MAX = 448.0  # the largest value of FP8 e4m3: a range of R gets the scale R / 448


def document(checkpoint: Record, verdict: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the report as JSON, from a checkpoint's record and the content of the ``verdict.json`` on it, if any.

    Errors are squared output errors relative to the outputs, over the calibration tokens.
    """
    figures = {name: figure for name, figure in checkpoint.figures.items() if name != PER_LAYER}
    heldout = verdict and {
        "verdict": verdict["verdict"],
        "engine": verdict["engine"],
        "overall": verdict["overall"],
        "segments": verdict["segments"],
    }
    return {
        "schema_version": 1,
        "checkpoint": {"key": checkpoint.key, "digest": checkpoint.digest, "created": checkpoint.created},
        "parameters": checkpoint.parts.parameters,
        "versions": checkpoint.parts.versions,
        "seconds": checkpoint.seconds,
        "size_bytes": sum(output.size_bytes for output in checkpoint.outputs.values()),
        "environment": checkpoint.environment,
        "figures": figures,
        "notes": checkpoint.notes,
        "layers": checkpoint.figures[PER_LAYER],
        "heldout": heldout,
    }


def page(report: Mapping[str, Any]) -> str:
    """Return the page of a report, given as ``document`` made it."""
    found = families(report["layers"])
    heldout = report["heldout"]
    metrics = heldout and [(drift.explained(name), finding) for name, finding in heldout["overall"].items()]
    return render(
        "quality",
        report=report,
        families=found,
        panels=panels(found),
        rows=[
            (layer, family.name, family.by_layer[layer])
            for layer in _layers(found)
            for family in found
            if layer in family.by_layer
        ],
        charts=[chart for chart in _charts(report["layers"], found) if chart],
        metrics=metrics or [],
        scopes=_scopes(heldout) if heldout else [],
        fp8_max=FP8_MAX,
    )


def _charts(layers: list[Mapping[str, Any]], found: list[Family]) -> list[Lines | None]:
    def by_family(field: str, factor: float = 1.0) -> dict[str, dict[int, float]]:
        values = {
            family.name: {layer: getattr(errors, field) for layer, errors in family.by_layer.items()}
            for family in found
        }
        return {
            name: {layer: value * factor for layer, value in series.items() if value is not None}
            for name, series in values.items()
        }

    def of_layer(**fields: str) -> dict[str, dict[int, float]]:
        return {name: {one["layer"]: one[field] for one in layers} for name, field in fields.items()}

    return [
        lines("Alpha", "exponent of the activation-aware scales; 0 is plain rounding", "", by_family("alpha")),
        lines("Clipped groups", "share of the groups of weights whose range was narrowed", " %",
              by_family("clipped_share", 100)),
        lines("Damping", "what compensated rounding added to G, as a share of its mean diagonal; more than 1 % means "
              "that G was nearly singular", " %", by_family("damping", 100)),
        lines("Outlier channels", "mean magnitude of the largest input channel over the median channel's", " ×",
              by_family("largest_over_median")),
        lines("Largest keys", "largest magnitude that enters the KV cache", "", of_layer(K="key_amax")),
        lines("Largest values", "largest magnitude that enters the KV cache", "", of_layer(V="value_amax")),
        lines("Time", "of each layer: statistics, search, rounding and writing", " s", of_layer(time="seconds")),
    ]  # fmt: skip


def _layers(found: list[Family]) -> list[int]:
    return sorted({layer for family in found for layer in family.by_layer})


def _scopes(heldout: Mapping[str, Any]) -> list[drift.Scoped]:
    # pairs, for a segment's name is the user's and may be that of the first row
    return [(drift.ALL_PROMPTS, heldout["overall"]), *heldout["segments"].items()]
