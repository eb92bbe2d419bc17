"""The verdict as text for a terminal. Numbers are rounded here and nowhere before."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtpipe.drift.gate import Finding
    from trtpipe.drift.verdict import EngineFacts, Verdict

WIDTH = 118


def render(verdict: Verdict) -> str:
    """Return the outcome, each finding, the reasons unless all passed, and on what it was measured."""
    buffer = io.StringIO()
    # Segment names and the policy's reason are the user's text, not markup.
    console = Console(file=buffer, width=WIDTH, markup=False, emoji=False, highlight=False)
    console.print(f"drift check: {verdict.verdict}\n")
    console.print(_findings(verdict))
    console.print(f"\n{verdict.served.answers_reason}")
    if verdict.verdict != "pass":
        console.print("\nreasons:")
        for reason in verdict.reasons:
            console.print(f"- {reason}")
    console.print()
    for line in _foot(verdict):
        console.print(line)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def _findings(verdict: Verdict) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("scope", "prompts", "tokens", "metric", "value", "interval", "limit", "excess", "outcome"):
        table.add_column(name, justify="right" if name in {"prompts", "tokens", "value", "excess"} else "left")
    for scope, finding in _scoped(verdict):
        table.add_row(
            scope,
            str(finding.prompts),
            str(finding.tokens),
            finding.metric,
            f"{finding.value:.4g}",
            f"{finding.low:.4g} .. {finding.high:.4g}",
            f"{finding.bound} {finding.limit:.4g}",
            f"{finding.excess:+.2g}",
            finding.outcome,
        )
    return table


def _scoped(verdict: Verdict) -> Iterator[tuple[str, Finding]]:
    for finding in verdict.overall.values():
        yield "overall", finding
    for segment, findings in verdict.segments.items():
        for finding in findings.values():
            yield f"segment {segment}", finding
    yield "served", verdict.served.agreement


def _foot(verdict: Verdict) -> Iterator[str]:
    engine, policy = verdict.engine, verdict.policy
    yield (
        f"engine:    {engine.name} {engine.version}, KV {engine.kv_dtype} "
        f"(scales: {engine.kv_scale_source}), {_processors(engine)}"
    )
    yield (f"intervals: {policy.confidence:.0%}, {verdict.intervals.name}, {policy.bootstrap_resamples} resamples")
    yield f"policy:    {policy.why}"


def _processors(engine: EngineFacts) -> str:
    if engine.gpus:
        return f"{len(engine.gpus)} x {', '.join(sorted(set(engine.gpus)))}"
    return f"CPU {' '.join(engine.cpu_flags) or 'without telling flags'}"
