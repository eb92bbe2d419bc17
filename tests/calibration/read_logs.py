"""Read whole logs in tests, the fast way and the strict way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trtpipe.calibration import census, files, reading
from trtpipe.calibration.census import Census
from trtpipe.calibration.reading import Log
from trtpipe.calibration.row import Row
from trtpipe.calibration.strict import Bad
from trtpipe.errors import ConfigError, TrtpipeError


@dataclass
class Read:
    """All rows of a log in the order of their lines, the bad ones, and counts."""

    rows: list[Row] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    fast_rows: int = 0
    blank_lines: int = 0
    boms_removed: int = 0


def log_of(*paths: Path, columns: dict[str, str] | None = None, shape: str | None = None, seed: int = 0) -> Log:
    return Log(files.find(list(paths)), columns or {}, shape, seed)


def read(*paths: Path, columns: dict[str, str] | None = None, shape: str | None = None, fast: bool = True) -> Read:
    """``fast`` False: the strict reader takes every row."""
    found = Read()
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(reading.frames, "of_lines", lambda lines, columns: [])
        log = log_of(*paths, columns=columns, shape=shape)
        for file in log.files:
            for batch in log.batches(file):
                found.rows += batch.rows(list(range(len(batch.identities))))
                found.bad += batch.bad
                found.fast_rows += batch.fast_rows
                found.blank_lines += batch.blank_lines
                found.boms_removed += batch.boms_removed
    found.rows.sort(key=lambda row: [int(part) for part in row.place.rsplit(":", 1)[1].removeprefix(" row").split()])
    return found


def counted(*paths: Path, pool_rows: int = 1000, per_segment: int = 10, characters_min: int = 1) -> Census:
    return census.take(
        log_of(*paths), pool_rows=pool_rows, pool_rows_per_segment=per_segment, characters_min=characters_min
    )


def problems(*paths: Path) -> list[TrtpipeError]:
    """Return what a log is refused for."""
    with pytest.raises(ConfigError) as caught:
        census.refuse_bad(counted(*paths), 0.0, "log")
    return caught.value.each()
