"""The rows that a set can be chosen from: read, cleaned, without copies, measured in tokens, each in its segment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.calibration import census as counting
from trtpipe.calibration import clean, files, near, segments, style, tokens
from trtpipe.calibration import ledger as ends
from trtpipe.calibration.census import Census
from trtpipe.calibration.clean import Cleaned
from trtpipe.calibration.reading import Log
from trtpipe.calibration.select import Candidate
from trtpipe.calibration.style import Style
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from trtpipe.calibration.row import Row
    from trtpipe.calibration.settings import Selection
    from trtpipe.core.chat import ChatTokenizer
    from trtpipe.core.progress import Reporter

POOL_ROWS_PER_SEGMENT = 1000


@dataclass(frozen=True)
class Population:
    """``candidates`` and ``styles`` are parallel, in rank order; ``uniform``: which are a uniform sample of the log.

    ``near_duplicates``: rows of the pool left out as near copies, of ``compared`` rows.
    """

    census: Census
    cleaned: Cleaned
    near_duplicates: int
    compared: int
    candidates: list[Candidate]
    styles: list[Style]
    uniform: list[bool]

    @property
    def sample(self) -> list[tuple[Candidate, Style]]:
        """The uniform sample of the log."""
        both = zip(self.candidates, self.styles, self.uniform, strict=True)
        return [(candidate, look) for candidate, look, uniform in both if uniform]


def read(log: Log, settings: Selection, tokenizer: ChatTokenizer, reporter: Reporter) -> Population:
    """Read, clean and measure a log. Raises ConfigError for bad rows beyond what is allowed, and for repeated ids."""
    where = ", ".join(str(file.path) for file in log.files)
    census = counting.take(
        log,
        pool_rows=settings.pool_rows,
        pool_rows_per_segment=POOL_ROWS_PER_SEGMENT,
        characters_min=settings.prompt_characters_min,
        progress=lambda read: reporter.progress("read files", read, len(log.files)),
    )
    counting.refuse_bad(census, settings.bad_rows_share_max, where)
    rows = census.pool.rows
    _refuse_repeated_ids(rows)
    census.ledger.dropped[ends.BEYOND_POOL] += census.distinct - len(rows)
    uniform_places = {row.place for row in rows[: census.pool.uniform_rows]}
    given = Counter(row.segment for row in rows)
    weights = {segment: census.segments[segment] / count for segment, count in given.items()}
    cleaned = clean.clean(
        rows, mask_personal_data=settings.mask_personal_data, seed=settings.seed, ledger=census.ledger
    )
    kept, copies = near.distinct(
        cleaned.rows,
        settings.near_duplicate_similarity,
        lambda done: reporter.progress("look for near duplicates", done, len(cleaned.rows)),
    )
    census.ledger.dropped[ends.NEAR_DUPLICATE] += copies
    counted = tokens.count(kept, tokenizer, lambda done: reporter.progress("count tokens", done, len(kept)))
    styles = [style.of(row) for row in kept]
    names = segments.assign(kept, styles, rows_min=2 * settings.heldout_prompts_per_segment)
    return Population(
        census=census,
        cleaned=cleaned,
        near_duplicates=copies,
        compared=len(cleaned.rows),
        candidates=[
            Candidate(item, name, weights[item.row.segment]) for item, name in zip(counted, names, strict=True)
        ],
        styles=styles,
        uniform=[row.place in uniform_places for row in kept],
    )


def log_of(paths: list[Path], settings: Selection) -> Log:
    """Find the files of a log. Raises ConfigError for those that are not there or can't be prompts."""
    container = None if settings.format == "auto" else settings.format
    shape = None if settings.shape == "auto" else settings.shape
    return Log(files.find(paths, container), settings.columns, shape, settings.seed)


def _refuse_repeated_ids(rows: list[Row]) -> None:
    places: dict[str, str] = {}
    for row in rows:
        first = places.setdefault(row.id, row.place)
        if first != row.place:
            raise ConfigError(
                f"the row's id is used before, at {first}",
                where=row.place,
                fix="give each row an `id` of its own, or name none in prompts.columns; rows without one are called"
                " by the numbers of file and line, as in 1:7",
            )
