"""Read a log of any size in batches: the fast path first, the strict reader for what is left.

A batch holds numbers and identities of its rows; a row's text is taken out only for the rows that are wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import IO

import polars as pl

from trtpipe.calibration import frames, strict
from trtpipe.calibration.chunks import Chunk, chunks
from trtpipe.calibration.files import LogFile
from trtpipe.calibration.row import Row, rank
from trtpipe.calibration.strict import Bad, Reader
from trtpipe.errors import ConfigError

PARQUET_ROWS = 20_000


@dataclass
class Batch:
    """Parallel lists over its good rows (the fast path's first), the bad rows, and what was passed over."""

    identities: list[bytes] = field(default_factory=list)
    segments: list[str | None] = field(default_factory=list)
    prompt_characters: list[int] = field(default_factory=list)
    asked_characters: list[int] = field(default_factory=list)
    response_characters: list[int] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    bad: list[Bad] = field(default_factory=list)
    blank_lines: int = 0
    boms_removed: int = 0
    fast_rows: int = 0
    _measured: frames.Measured | None = None
    _place: Callable[[int], tuple[str, str]] | None = None
    _rows: list[Row] = field(default_factory=list)

    def rows(self, positions: list[int]) -> list[Row]:
        """Return the rows at ascending positions of the lists, with their text."""
        fast = [position for position in positions if position < self.fast_rows]
        found = []
        if self._measured is not None and self._place is not None and fast:
            places = [self._place(self._measured.indices[position]) for position in fast]
            found = self._measured.rows(fast, places)
        return found + [self._rows[position - self.fast_rows] for position in positions[len(fast) :]]

    def add(self, found: tuple[Row, str] | Bad, seed: int) -> None:
        """Add what the strict reader gave: a row with its shape, or what is wrong with it."""
        if isinstance(found, Bad):
            self.bad.append(found)
            return
        row, shape = found
        self.identities.append(rank(row.canonical, seed))
        self.segments.append(row.segment)
        self.prompt_characters.append(row.prompt_characters)
        self.asked_characters.append(row.asked_characters)
        self.response_characters.append(len(row.response or ""))
        self.shapes[shape] += 1
        self._rows.append(row)

    def add_measured(self, measured: frames.Measured, place: Callable[[int], tuple[str, str]], seed: int) -> None:
        """Add the fast path's rows, before any other. ``place``: index of a row that it was given -> id and place."""
        self._measured, self._place = measured, place
        self.identities += [rank(text, seed) for text in measured.canonical]
        self.segments += measured.segments
        self.prompt_characters += measured.prompt_characters
        self.asked_characters += measured.asked_characters
        self.response_characters += measured.response_characters
        self.fast_rows = len(measured.indices)
        self.shapes += Counter(plain=measured.plain_rows, chat=self.fast_rows - measured.plain_rows)


@dataclass(frozen=True)
class Log:
    """A log and how it is read. ``columns`` and ``shape`` as in Reader; ``seed`` of the identities."""

    files: list[LogFile]
    columns: Mapping[str, str]
    shape: str | None
    seed: int

    @property
    def reader(self) -> Reader:
        return Reader(self.columns, self.shape)

    def batches(self, file: LogFile) -> Iterator[Batch]:
        """Read one file. Raises ConfigError where the file as a whole can't be read."""
        try:
            with file.opened() as stream:
                if file.container == "parquet":
                    yield from self._parquet(file, stream)
                    return
                header: list[str] | None = None
                for chunk in chunks(stream, quoted=file.container == "csv"):
                    if file.container == "jsonl":
                        yield self._json_lines(file, chunk)
                    else:
                        batch, header = self._csv(file, chunk, header)
                        yield batch
        except ConfigError as fault:
            if fault.where != str(file.path):
                fault.where = f"{file.path}: {fault.where}"
            raise
        except OSError as fault:
            raise ConfigError(
                f"can't read the prompts: {fault.strerror}", where=str(file.path), fix="check prompts.files"
            ) from None

    def _json_lines(self, file: LogFile, chunk: Chunk) -> Batch:
        batch = Batch(boms_removed=int(chunk.bom_removed))
        lines = chunk.content.split(b"\n")
        if not lines[-1]:  # what follows the last newline is no line
            lines.pop()
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=chunk.offset))
        filled = [index for index, line in enumerate(lines) if line and not line.isspace()]
        batch.blank_lines = len(lines) - len(filled)
        left = filled
        if self._fast:
            doubtful = frames.doubtful_lines(chunk.content, lines, self.columns)
            given = [index for index in filled if index not in doubtful]
            parsed = frames.of_lines([lines[index] for index in given], self.columns) if given else []
            measured = frames.measure(parsed, self.shape)
            if measured is not None:
                batch.add_measured(measured, lambda index: self._place(file, chunk.line + given[index]), self.seed)
                taken = {given[index] for index in measured.indices}
                left = [index for index in filled if index not in taken]
        for index in left:
            number = chunk.line + index
            row_id, _ = self._place(file, number)
            found = self.reader.json_line(lines[index], row_id, str(file.path), number, offsets[index])
            batch.add(found, self.seed)
        return batch

    def _csv(self, file: LogFile, chunk: Chunk, header: list[str] | None) -> tuple[Batch, list[str] | None]:
        batch = Batch(boms_removed=int(chunk.bom_removed))
        path = str(file.path)
        for number, cells in strict.csv_records(chunk.content, path, chunk.line, chunk.offset):
            if isinstance(cells, Bad):
                batch.bad.append(cells)
            elif not cells:
                batch.blank_lines += 1
            elif header is None:
                header = strict.header(cells, f"line {number}")
            else:
                row_id, where = self._place(file, number)
                document = strict.cells_document(header, cells, where)
                if isinstance(document, Bad):
                    batch.add(document, self.seed)
                else:
                    batch.add(self.reader.document(document, row_id, where), self.seed)
        return batch, header

    def _parquet(self, file: LogFile, stream: IO[bytes]) -> Iterator[Batch]:
        source = stream.read() if file.compression else file.path
        try:
            lazy = pl.scan_parquet(source)
            first = 0
            while (frame := lazy.slice(first, PARQUET_ROWS).collect()).height:
                yield self._rows(file, frame, first)
                first += frame.height
        except (pl.exceptions.PolarsError, OSError) as fault:
            raise ConfigError(
                f"not a Parquet file that can be read: {str(fault).splitlines()[0][:200]}",
                where=str(file.path),
                fix="write the file again",
            ) from None

    def _rows(self, file: LogFile, frame: pl.DataFrame, first: int) -> Batch:
        batch = Batch()
        for number, document in enumerate(frame.iter_rows(named=True), start=first + 1):
            row_id, _ = self._place(file, number)
            batch.add(self.reader.document(document, row_id, f"{file.path}: row {number}"), self.seed)
        return batch

    @staticmethod
    def _place(file: LogFile, number: int) -> tuple[str, str]:
        """Return the id of a row that has none of its own, and its file and line."""
        return f"{file.number}:{number}", f"{file.path}:{number}"

    @property
    def _fast(self) -> bool:
        dotted = any("." in column for column in self.columns.values())
        return not dotted and self.shape in (None, "plain", "chat")
