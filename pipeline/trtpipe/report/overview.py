"""The run overview: what became of each stage, what it chose, and what follows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from trtpipe.report import drift, svg
from trtpipe.report.error_plot import panels
from trtpipe.report.layer_errors import families
from trtpipe.report.page import render
from trtpipe.report.wording import duration

if TYPE_CHECKING:
    from trtpipe.core.artifacts import Record
    from trtpipe.core.runner import Outcome

PER_LAYER = "per_layer"


@dataclass(frozen=True)
class NextStep:
    """A command worth typing now, and what for."""

    command: str
    purpose: str


@dataclass(frozen=True)
class StageRow:
    """A stage as the page shows it. ``href``: its artifact's folder, relative to the page."""

    name: str
    reused: bool
    why: str
    seconds: float
    record: Record
    id: str
    href: str
    key_figures: dict[str, Any]
    figures: dict[str, Any]
    size_bytes: int
    bar: Markup


def page(
    outcomes: Sequence[Outcome],
    verdict: Mapping[str, Any],
    *,
    folder: Path,
    current: str | None,
    key_figures: Mapping[str, Sequence[str]],
    next_steps: Sequence[NextStep],
) -> str:
    """Return the overview of a whole run, from the stages' outcomes and the content of ``verdict.json``.

    ``folder``: where the page will lie. ``current``: id of the release that is served. ``key_figures``: by stage.
    """
    longest = max(outcome.artifact.record.seconds for outcome in outcomes) or 1.0
    stages = [_row(outcome, folder, key_figures[outcome.name], longest) for outcome in outcomes]
    of_kind = {stage.record.kind: stage for stage in stages}
    layers = of_kind["checkpoint"].record.figures[PER_LAYER]
    return render(
        "overview",
        stages=stages,
        built=sum(not stage.reused for stage in stages),
        seconds=sum(stage.seconds for stage in stages),
        verdict=verdict,
        metrics=[(drift.explained(name).title, finding) for name, finding in verdict["overall"].items()],
        release=of_kind["release"],
        check=of_kind["verdict"],
        checkpoint=of_kind["checkpoint"],
        current=current,
        layers=layers,
        panels=panels(families(layers)),
        next_steps=next_steps,
    )


def _row(outcome: Outcome, folder: Path, key_figures: Sequence[str], longest_s: float) -> StageRow:
    record = outcome.artifact.record
    figures = {name: figure for name, figure in record.figures.items() if name != PER_LAYER}
    same = f"same inputs and parameters ({outcome.artifact.id})"
    took = f"making it took {duration(record.seconds)}"
    return StageRow(
        name=outcome.name,
        reused=outcome.reused,
        why=same if outcome.reused else outcome.decision.removeprefix("built: "),
        seconds=outcome.seconds,
        record=record,
        id=outcome.artifact.id,
        href=quote(Path(os.path.relpath(outcome.artifact.path, folder)).as_posix()),
        key_figures={name: figures[name] for name in key_figures if name in figures},
        figures=figures,
        size_bytes=sum(output.size_bytes for output in record.outputs.values()),
        bar=svg.bar(record.seconds / longest_s, took, "reused" if outcome.reused else "built"),
    )
