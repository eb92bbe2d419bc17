"""The prompt report: what a log is like, what was chosen from it, and what became of every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from trtpipe.report.histogram import histogram
from trtpipe.report.page import render
from trtpipe.report.svg import bar
from trtpipe.report.wording import percent

BINS_PER_OCTAVE = 4


@dataclass(frozen=True)
class Share:
    """A share of the rows with its interval, drawn. ``exact``: no sampling error."""

    name: str
    value: float
    low: float
    high: float
    plot: Markup

    @property
    def exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class SegmentRow:
    """A segment of the log beside its place in the two sets. ``chosen_share``: of the business calibration prompts."""

    share: Share
    tokens_median: float | None
    calibration: int
    chosen_share: float | None
    heldout: int


def page(document: Mapping[str, Any], examples: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the report of a prompt document. ``examples``: prompts by segment, shown only where they are given."""
    profile = document["profile"]
    return render(
        "prompts",
        document=document,
        profile=profile,
        selection=document["selection"],
        segments=_segments(document),
        lengths=[
            ("Prompt", "with template, in tokens", _histogram("prompt", profile["reference"]["prompt_tokens"])),
            ("Response", "with its end token", _histogram("response", profile["reference"]["response_tokens"])),
        ],
        languages=[_share(name, found) for name, found in profile["languages"].items()],
        styles=[_share(name.replace("_", " "), found) for name, found in profile["style"]["shares"].items()],
        examples=examples or {},
    )


def _segments(document: Mapping[str, Any]) -> list[SegmentRow]:
    selection = document["selection"] or {"segments": [], "general_prompts": 0}
    chosen = {row["segment"]: row for row in selection["segments"]}
    business = sum(row["calibration"] for row in selection["segments"]) - selection["general_prompts"]
    rows = []
    for found in document["profile"]["segments"]:
        mine = chosen.pop(found["segment"], {"calibration": 0, "heldout": 0})
        share = mine["calibration"] / business if business else None
        rows.append(
            SegmentRow(
                _share(found["segment"], found | {"value": found["share"]}),
                found["tokens_median"],
                mine["calibration"],
                share,
                mine["heldout"],
            )
        )
    return rows


def _share(name: str, found: Mapping[str, float]) -> Share:
    value = found["value"]
    return Share(name, value, found["low"], found["high"], bar(value, f"{name}: {percent(value)}", "built"))


def _histogram(name: str, bins: Mapping[str, int]) -> Markup | None:
    if not bins:
        return None
    edges = {round(2 ** (int(number) / BINS_PER_OCTAVE)): count for number, count in bins.items()}
    return histogram(edges, f"{name} lengths in tokens")
