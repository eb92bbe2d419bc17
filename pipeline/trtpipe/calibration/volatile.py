"""Text that changes from request to request and so ends the prefix that requests share: times, ids, counters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

# In this order: a time holds a date, an id may hold digits that look like a counter.
KINDS: dict[str, re.Pattern[str]] = {
    "time": re.compile(
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?|\b\d{1,2}:\d{2}(?::\d{2})?\b"
        r"(?: ?[AaPp]\.?[Mm]\b)?|\b1[5-9]\d{8}(?:\d{3})?\b"
    ),
    "date": re.compile(
        r"\b\d{4}[-/]\d{2}[-/]\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
        r"|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b"
        r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2},? \d{4}\b"
    ),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    "request id": re.compile(
        r"\b(?=[\w-]*\d)(?:[a-z]{2,12}[-_])[A-Za-z0-9]{6,40}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{16,64}\b"
    ),
    "counter": re.compile(r"(?<=[#№ =:])\d{1,9}\b"),
}
CONTEXT_CHARACTERS = 24
LOOKED_AT = 16_000  # characters from the start; what varies behind them cuts little off
ROWS_SHARE_MIN = 0.02
FIELDS_PER_PROMPT_MAX = 20


@dataclass(frozen=True)
class Span:
    """One match in one prompt, in characters of its rendered text."""

    start: int
    end: int


@dataclass(frozen=True)
class VolatileField:
    """A place in prompts whose text changes. ``spans``: row -> where it stands there; ``values``: different texts."""

    kind: str
    spans: dict[int, Span]
    values: int


def find(prompts: Sequence[str]) -> list[VolatileField]:
    """Return the volatile fields of rendered prompts, earliest first.

    Matches of one kind behind the same text are one field; it is volatile where most of its values differ and it
    stands in 2 % of the prompts at least. Only a prompt's first matches are looked at.
    """
    found: dict[tuple[str, str], dict[int, Span]] = defaultdict(dict)
    for row, prompt in enumerate(prompts):
        for kind, span in _matches(prompt[:LOOKED_AT]):
            before = prompt[max(span.start - CONTEXT_CHARACTERS, 0) : span.start]
            found[kind, _without_digits(before)].setdefault(row, span)
    fields = []
    for (kind, _), spans in found.items():
        values = len({prompts[row][span.start : span.end] for row, span in spans.items()})
        if len(spans) >= max(2, ROWS_SHARE_MIN * len(prompts)) and values >= max(2, len(spans) // 20):
            fields.append(VolatileField(kind, spans, values))
    return sorted(fields, key=lambda field: sorted(span.start for span in field.spans.values())[len(field.spans) // 2])


def _matches(prompt: str) -> list[tuple[str, Span]]:
    """Return matches that don't overlap, an earlier kind first."""
    taken: list[tuple[str, Span]] = []
    for kind, pattern in KINDS.items():
        for match in pattern.finditer(prompt):
            span = Span(*match.span())
            if all(span.end <= other.start or span.start >= other.end for _, other in taken):
                taken.append((kind, span))
            if len(taken) >= FIELDS_PER_PROMPT_MAX * len(KINDS):
                break
    return sorted(taken, key=lambda one: one[1].start)[:FIELDS_PER_PROMPT_MAX]


def _without_digits(text: str) -> str:
    return re.sub(r"\d", "0", text)
