"""Prompt and answer lengths of a log: from `trtpipe profile --json`, its prompts.json, or a prompt set's record."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

BINS_PER_OCTAVE = 4  # of a record's lengths, as calibration/select.py counts them
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True)
class Lengths:
    """Quantiles (p50, p95, p99, max) in tokens; ``answer`` is empty where the log has no answers.

    ``reuse_share``: the share of the prefill that equal leading blocks save; None where that was not measured.
    ``bounds``: whether the figures are upper edges of length bins.
    """

    prompt: dict[str, int]
    answer: dict[str, int]
    reuse_share: float | None
    bounds: bool

    def sequence_tokens(self, quantile: str, answer_tokens_max: int) -> int:
        """Return prompt plus answer at a quantile; without answers in the log, the longest that may be asked for."""
        return self.prompt[quantile] + (self.answer[quantile] if self.answer else answer_tokens_max)


def read(path: Path) -> Lengths:
    """Read a profile or a record (or its folder). Raises ConfigError where it holds no lengths."""
    file = path / "record.json" if path.is_dir() else path
    try:
        document = json.loads(file.read_text("utf-8"))
    except OSError as fault:
        raise _unfit(file, fault.strerror or "it can't be read") from None
    except ValueError as fault:
        raise _unfit(file, f"not JSON: {fault}") from None
    try:
        if "profile" in document:
            return _profiled(document["profile"])
        return _recorded(document["figures"]["reference"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _unfit(file, "there are no prompt lengths in it") from None


def _unfit(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"no length profile: {why}",
        where=str(file),
        fix="give what `trtpipe profile --json` writes, .trtpipe/prompts.json, or a prompt set of calibration/sets",
    )


def _profiled(profile: dict[str, Any]) -> Lengths:
    found = profile["lengths"]
    prompt, answer = (
        {name: int(found[which][name]["value"]) for name in QUANTILES} if found[which] else {}
        for which in ("prompt_tokens", "response_tokens")
    )
    return Lengths(_some(prompt), answer, float(profile["prefix"]["reuse_share"]), bounds=False)


def _recorded(reference: dict[str, Any]) -> Lengths:
    prompt, answer = (
        {name: _upper_edge(bins, part) for name, part in QUANTILES.items()} if bins else {}
        for bins in ({int(number): n for number, n in reference[which].items()} for which in _RECORDED)
    )
    return Lengths(_some(prompt), answer, None, bounds=True)


_RECORDED = ("prompt_tokens", "response_tokens")


def _some(quantiles: dict[str, int]) -> dict[str, int]:
    if not quantiles:
        raise ValueError("no prompts")
    return quantiles


def _upper_edge(bins: dict[int, int], part: float) -> int:
    """Return the most tokens that the quantile can have."""
    wanted, seen = part * sum(bins.values()), 0
    for number in sorted(bins):
        seen += bins[number]
        if seen >= wanted:
            return int(2 ** ((number + 1) / BINS_PER_OCTAVE))
    raise ValueError("no rows")
