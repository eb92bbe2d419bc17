"""What a chain command says at its end."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from trtpipe.chain import quality
from trtpipe.errors import GateInconclusive, GateRejected
from trtpipe.release.current import current_id
from trtpipe.report import overview
from trtpipe.report.overview import NextStep

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Outcome
    from trtpipe.core.store import Store

# The figures worth a line on the screen; the record has them all.
KEY_FIGURES = {
    "sample-model": ("parameters", "answer"),
    "select-prompts": ("calibration_prompts", "heldout_prompts", "calibration_tokens"),
    "calibrate": ("relative_error_plain_rounding_mean", "relative_error_final_mean", "group_size"),
    "build-engine": ("kv_dtype", "kv_tokens", "int4_layers"),
    "package": ("engine_files",),
    "score-baseline": ("kv_dtype", "peak_rss_mib"),
    "score-release": ("kv_dtype", "peak_rss_mib"),
    "check-drift": ("verdict", "kl_top20_nats", "top1_agreement", "perplexity_ratio"),
}
WIDTH = 118
REPORT = "report.html"

AFTER_PASS = (
    NextStep("trtpipe serve", "start Triton with the current release"),
    NextStep('trtpipe ask "Write a polite reply to a customer whose parcel is late."', "try it"),
    NextStep("trtpipe rollback", "go back to the release before"),
)
AFTER_NO_PASS = (
    NextStep("trtpipe run", "again, after adding prompts like the traffic, or changing the policy with a reason"),
    NextStep("trtpipe status", "see which release is current meanwhile"),
)


def document(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the stages as JSON: name, decision, seconds, artifact, figures."""
    return {
        "stages": [
            {
                "stage": outcome.name,
                "decision": outcome.decision,
                "reused": outcome.reused,
                "seconds": round(outcome.seconds, 2),
                "path": str(outcome.artifact.path),
                "digest": outcome.artifact.digest,
                "figures": {name: outcome.artifact.record.figures.get(name) for name in KEY_FIGURES[outcome.name]},
            }
            for outcome in outcomes
        ]
    }


def stages(outcomes: list[Outcome]) -> str:
    """Return the table of stages as text."""
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "", "seconds", "key figures"):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    for outcome in outcomes:
        figures = outcome.artifact.record.figures
        shown = [f"{name} {_short(figures[name])}" for name in KEY_FIGURES[outcome.name] if name in figures]
        state = "reused" if outcome.reused else "built"
        table.add_row(outcome.name, state, f"{outcome.seconds:.1f}", ", ".join(shown))
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, highlight=False, markup=False, emoji=False).print(table)
    return buffer.getvalue().rstrip()


def table(outcomes: list[Outcome], verdict: Artifact, release: Artifact, report: Path, *, changed: bool) -> str:
    """Return the closing text of a whole run."""
    state = "is now current" if changed else "stays current"
    return "\n".join(
        [
            stages(outcomes),
            "",
            f"release {release.id} passed the drift check and {state}",
            f"drift report: {verdict.path / 'verdict.html'}",
            f"run overview: {report}",
            "next: " + "\n      ".join(step.command for step in AFTER_PASS[:2]),
        ]
    )


def write_report(store: Store, outcomes: list[Outcome], verdict: Artifact) -> Path:
    """Write the overview of a whole run, and the calibration quality report; return the path of the first."""
    found = _content(verdict)
    quality.write(store, next(one.artifact for one in outcomes if one.artifact.record.kind == "checkpoint"))
    page = overview.page(
        outcomes,
        found,
        folder=store.state,
        current=current_id(store),
        key_figures=KEY_FIGURES,
        next_steps=AFTER_PASS if found["verdict"] == "pass" else AFTER_NO_PASS,
    )
    path = store.state / REPORT
    path.write_text(page, encoding="utf-8")
    return path


def require_pass(verdict: Artifact) -> None:
    """Raise GateRejected or GateInconclusive with the reasons, unless the verdict is a pass."""
    found = _content(verdict)
    if found["verdict"] == "pass":
        return
    kind = GateRejected if found["verdict"] == "fail" else GateInconclusive
    raise kind(
        f"the drift check says {found['verdict']}: " + "; ".join(found["reasons"]),
        where=str(verdict.path / "verdict.json"),
        fix="read verdict.html beside it; calibrate on prompts like the traffic, or change the policy with a reason",
    )


def exit_code(verdict: str) -> int:
    return {"pass": 0, "fail": GateRejected.exit_code}.get(verdict, GateInconclusive.exit_code)


def _content(verdict: Artifact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((verdict.path / "verdict.json").read_text("utf-8"))
    return found


def _short(figure: Any) -> str:
    if isinstance(figure, float):
        return f"{figure:.4g}"
    return ", ".join(map(str, figure)) if isinstance(figure, list) else str(figure)
