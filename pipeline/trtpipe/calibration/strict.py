"""The byte-level reader: one record after the other, every fault with file, line, byte offset and hex.

It decides what a row means. The fast path hands over to it what it can't read for certain. No message holds a row's
text: a log may hold anything.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from trtpipe.calibration.chunks import RECORD_BYTES_MAX
from trtpipe.calibration.messages import Fault, plain_text, text
from trtpipe.calibration.row import Row
from trtpipe.calibration.shapes import SHAPES, detect
from trtpipe.errors import ConfigError

# CSV cells are texts; these columns hold JSON.
JSON_COLUMNS = ("messages", "conversations", "tools", "inputs", "outputs")

csv.field_size_limit(RECORD_BYTES_MAX)  # its own default would refuse prompts of 128 KiB


@dataclass(frozen=True)
class Bad:
    """A row that can't be read. ``kind``: a few words for the ledger. ``where``: file:line[:column] [place]."""

    kind: str
    what: str
    where: str
    fix: str


@dataclass(frozen=True)
class Reader:
    """How documents become rows. ``columns``: our name -> the log's, dots lead into objects. No shape: detected."""

    columns: Mapping[str, str]
    shape: str | None

    def json_line(self, line: bytes, row_id: str, file: str, number: int, offset: int) -> tuple[Row, str] | Bad:
        """Read line ``number``, which starts at byte ``offset``: the row and its shape, or what is wrong."""
        where = f"{file}:{number}"
        damaged = undecodable(line, file, number, offset)
        if damaged:
            return damaged
        try:
            value = json.loads(line.rstrip(b"\r").decode("utf-8"))
        except json.JSONDecodeError as fault:
            at = offset + len(fault.doc[: fault.pos].encode())
            byte = fault.doc[fault.pos :].encode()[:1].hex().upper()
            held = f"holds {byte}" if byte else "is the line's end"
            return Bad(
                "not JSON",
                f"not JSON: {fault.msg}; byte offset {at} of the file {held}",
                f"{where}:{fault.colno}",
                "one JSON object a line; correct that row",
            )
        except (RecursionError, ValueError):  # thousands of brackets, or of digits in one integer
            return Bad(
                "not JSON",
                f"nested too deeply, or a number too long; it starts at byte offset {offset}",
                where,
                "correct that row",
            )
        if isinstance(value, dict):
            found: tuple[Row, str] | Bad = self.document(value, row_id, where)
        else:
            found = Bad("not an object", "the row is not a JSON object", where, 'for instance {"prompt": "..."}')
        if isinstance(found, Bad):
            return replace(found, what=f"{found.what}; the row starts at byte offset {offset} of the file")
        return found

    def document(self, value: dict[str, Any], row_id: str, where: str) -> tuple[Row, str] | Bad:
        try:
            mapped = self._mapped(value)
            shape = detect(mapped, self.shape)
            messages, response, tools = SHAPES[shape].read(mapped)
            row = Row(_id(mapped) or row_id, text(mapped, "segment") or None, messages, response, where, tools)
        except Fault as fault:
            return Bad("wrong shape", fault.what, f"{where} {fault.place}".rstrip(), fault.fix)
        except RecursionError:
            return Bad("wrong shape", "nested too deeply", where, "correct that row")
        return row, shape

    def _mapped(self, value: dict[str, Any]) -> Mapping[str, Any]:
        if not self.columns:
            return value
        theirs = {name.split(".")[0] for name in self.columns.values()}
        rest = {name: item for name, item in value.items() if name not in theirs and name not in self.columns}
        return rest | {name: _at(value, column) for name, column in self.columns.items()}


def csv_records(content: bytes, where: str, line: int, offset: int) -> Iterator[tuple[int, list[str] | Bad]]:
    """Yield the records of a CSV chunk with the number of their first line; blank lines are empty records."""
    starts = [0, *(match.end() for match in re.finditer(rb"\n", content)), len(content)]
    text_lines = (
        content[start:end].decode("utf-8", "surrogateescape") for start, end in pairwise(starts) if end > start
    )
    records = csv.reader(text_lines, strict=True)
    while True:
        before = records.line_num
        try:
            cells = next(records)
        except StopIteration:
            return
        except csv.Error as fault:
            what = f"not CSV: {fault}; the record starts at byte offset {offset + starts[before]}"
            yield line + before, Bad("not CSV", what, f"{where}:{line + before}", "correct the quotes")
            continue
        record = content[starts[before] : starts[records.line_num]]
        yield line + before, undecodable(record, where, line + before, offset + starts[before]) or cells


def header(cells: list[str], where: str) -> list[str]:
    """Return the names of a CSV file's columns. Raises ConfigError for one that stands twice."""
    repeated = sorted({name for name in cells if name and cells.count(name) > 1})
    if repeated:
        raise ConfigError(
            f"the header names {', '.join(f'`{name}`' for name in repeated)} more than once",
            where=where,
            fix="give each column a name of its own",
        )
    return cells


def cells_document(header: list[str], cells: list[str], where: str) -> dict[str, Any] | Bad:
    """Return a CSV record as a document: an empty cell is not given, lists are read from their JSON."""
    if len(cells) != len(header):
        what = f"{len(cells)} cell(s), but the header has {len(header)}"
        return Bad("not CSV", what, where, "quote cells that hold commas or line ends")
    document: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        if not cell:
            continue
        if name in JSON_COLUMNS:
            try:
                document[name] = json.loads(cell)
            except (ValueError, RecursionError):
                return Bad("wrong shape", f"`{name}` is not JSON", where, "write lists as JSON in that column")
        else:
            document[name] = cell
    return document


def undecodable(record: bytes, where: str, line: int, offset: int) -> Bad | None:
    """Return where a record stops being UTF-8, if it does: line, byte of that line, offset in the file, hex."""
    try:
        record.decode("utf-8")
    except UnicodeDecodeError as fault:
        at = fault.start
        column = at - record.rfind(b"\n", 0, at)
        number = line + record.count(b"\n", 0, at)
        what = f"not UTF-8: byte {record[at]:02X} at byte offset {offset + at} of the file"
        return Bad("not UTF-8", what, f"{where}:{number}:{column}", "save the file as UTF-8")
    return None


def _id(document: Mapping[str, Any]) -> str | None:
    found = document.get("id")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return None if found is None else plain_text(found, "id")


def _at(value: Mapping[str, Any], path: str) -> Any:
    if path in value:
        return value[path]
    found: Any = value
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
