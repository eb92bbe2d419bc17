"""The pass over all rows: counts, exact duplicates, lengths in characters, and the pool of rows to look at closely."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtpipe.calibration import ledger as ends
from trtpipe.calibration.ahead import ahead
from trtpipe.calibration.ledger import Ledger
from trtpipe.calibration.pool import Pool
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtpipe.calibration.reading import Batch, Log
    from trtpipe.calibration.strict import Bad

PROBLEMS_SHOWN = 20
SEGMENTS_MAX = 200


@dataclass
class Census:
    """What all rows together say. ``segments``: distinct good rows by given segment (None: not given).

    ``prompt_characters`` and ``response_characters``: of each distinct good row.
    """

    ledger: Ledger = field(default_factory=Ledger)
    files: list[str] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    segments: Counter[str | None] = field(default_factory=Counter)
    prompt_characters: array[int] = field(default_factory=lambda: array("l"))
    response_characters: array[int] = field(default_factory=lambda: array("l"))
    bad: list[Bad] = field(default_factory=list)
    blank_lines: int = 0
    boms_removed: int = 0
    fast_rows: int = 0
    pool: Pool = field(default_factory=lambda: Pool(1, 1))

    @property
    def distinct(self) -> int:
        return len(self.prompt_characters)


def take(
    log: Log,
    *,
    pool_rows: int,
    pool_rows_per_segment: int,
    characters_min: int,
    progress: Callable[[int], None] = lambda files: None,
) -> Census:
    """Read the whole log once. Raises ConfigError where a file as a whole can't be read."""
    census = Census(pool=Pool(pool_rows, pool_rows_per_segment))
    seen: set[bytes] = set()
    for file in log.files:
        progress(len(census.files))
        census.files.append(file.described)
        for batch in ahead(log.batches(file)):
            _count(census, batch, seen, characters_min)
    census.pool.settle()
    return census


def _count(census: Census, batch: Batch, seen: set[bytes], characters_min: int) -> None:
    dropped = census.ledger.dropped
    census.ledger.rows += len(batch.identities) + len(batch.bad)
    census.shapes += batch.shapes
    census.bad += batch.bad
    census.blank_lines += batch.blank_lines
    census.boms_removed += batch.boms_removed
    census.fast_rows += batch.fast_rows
    dropped.update(f"unreadable: {bad.kind}" for bad in batch.bad)
    lists = zip(
        batch.identities,
        batch.segments,
        batch.asked_characters,
        batch.prompt_characters,
        batch.response_characters,
        strict=True,
    )
    wanted: dict[int, bytes] = {}
    for position, (identity, segment, asked, prompt, response) in enumerate(lists):
        if not asked or asked < characters_min:
            dropped[ends.SHORT if asked else ends.BLANK] += 1
        elif identity in seen:
            dropped[ends.DUPLICATE] += 1
        else:
            seen.add(identity)
            census.segments[segment] += 1
            census.prompt_characters.append(prompt)
            census.response_characters.append(response)
            if census.pool.wants(identity, segment):
                wanted[position] = identity
    for identity, row in zip(wanted.values(), batch.rows(list(wanted)), strict=True):
        census.pool.add(identity, row)
    if len(census.segments) > SEGMENTS_MAX:
        raise ConfigError(
            f"more than {SEGMENTS_MAX} segments: what names a single row or user is no segment",
            where="prompts.columns.segment",
            fix="name a column of few values, or none, so that segments are derived",
        )


def refuse_bad(census: Census, share_max: float, where: str) -> None:
    """Raise ConfigError where too many rows can't be read (all faults, the first 20 in full), or no row can."""
    rows = census.ledger.rows
    problems: list[TrtpipeError] = []
    if census.bad and (len(census.bad) > share_max * rows or not census.distinct):
        shown = census.bad[:PROBLEMS_SHOWN]
        problems += [ConfigError(bad.what, where=bad.where, fix=bad.fix) for bad in shown]
        hidden = len(census.bad) - len(shown)
        if hidden:
            fix = "correct the file, or leave bad rows out with prompts.bad_rows_share_max"
            problems.append(ConfigError(f"and {hidden} more problems", where=where, fix=fix))
    elif not census.distinct:
        problems.append(
            ConfigError(
                "no prompts in the file(s)" + (f". Ledger: {census.ledger}" if census.ledger.rows else ""),
                where=where,
                fix='write one JSON object a line, such as {"prompt": "..."} or {"messages": [...]}',
            )
        )
    raise_all(problems)
