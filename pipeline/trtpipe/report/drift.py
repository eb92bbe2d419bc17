"""The drift report: a verdict as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from trtpipe.report import svg
from trtpipe.report.page import render
from trtpipe.report.scale import covering


@dataclass(frozen=True)
class Explained:
    """What a metric is called and what it means."""

    title: str
    meaning: str


METRICS = {
    "kl_top20_nats": Explained(
        "KL divergence",
        "How far the release's token probabilities are from the baseline's, a lower bound from the baseline's "
        "20 likeliest tokens; 0 is no difference",
    ),
    "top1_agreement": Explained(
        "Top-1 agreement", "How often release and baseline prefer the same next token; 1 is always"
    ),
    "perplexity_ratio": Explained(
        "Perplexity ratio", "The release's perplexity on the observed tokens over the baseline's; 1 is no difference"
    ),
}
ALL_PROMPTS = "all prompts"

Scoped = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """One scope's finding with its drawing."""

    scope: str
    finding: Mapping[str, Any]
    plot: Markup


@dataclass(frozen=True)
class Group:
    """The findings of one metric, drawn on one scale."""

    title: str
    meaning: str
    unit: str
    rows: list[Row]
    axis: Markup


def page(verdict: Mapping[str, Any]) -> str:
    """Return the report of a verdict, given as the content of its ``verdict.json``."""
    served = _group(
        Explained("Agreement", "How often the token that Triton served is the one that the release's engine prefers"),
        [("served", verdict["served"]["agreement"])],
    )
    groups = [_group(explained(name), _by_scope(verdict, name)) for name in verdict["overall"]]
    outcomes = [row.finding["outcome"] for group in (*groups, served) for row in group.rows]
    outcomes.append(verdict["served"]["answers_outcome"])
    return render(
        "drift",
        verdict=verdict,
        groups=groups,
        served=served,
        checks=len(outcomes),
        counts={outcome: outcomes.count(outcome) for outcome in ("pass", "fail", "inconclusive")},
    )


def explained(metric: str) -> Explained:
    """Return a metric's words; one that this version has none for keeps its name."""
    return METRICS.get(metric, Explained(metric, ""))


def _by_scope(verdict: Mapping[str, Any], metric: str) -> list[Scoped]:
    # Pairs, for a segment's name is the user's and may be that of the first row.
    segments = [(segment, findings[metric]) for segment, findings in verdict["segments"].items()]
    return [(ALL_PROMPTS, verdict["overall"][metric]), *segments]


def _group(words: Explained, findings: list[Scoped]) -> Group:
    drawn = [finding[name] for _, finding in findings for name in ("low", "value", "high", "limit")]
    scale = covering(drawn, svg.INSET, svg.WIDTH - svg.INSET)
    unit = findings[0][1]["unit"]
    return Group(
        title=words.title,
        meaning=words.meaning,
        unit=unit,
        rows=[Row(scope, finding, svg.interval(scope, finding, scale)) for scope, finding in findings],
        axis=svg.axis(scale, f"scale of {words.title}, {unit}"),
    )
