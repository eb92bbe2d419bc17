"""The fast path: rows of the two commonest shapes, plain and chat, read and measured inside polars.

It takes a row only where its meaning is beyond doubt; polars writes numbers and lists into text columns, so a text
that looks like one is doubtful. What it leaves goes to the strict reader, which gives the same result, more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from trtpipe.calibration.messages import TEMPLATE_KEYS
from trtpipe.calibration.row import BLANKS, RECORD, ROLES, UNIT, Message, Row
from trtpipe.calibration.shapes import SHAPES

# simd-json overflows the stack some thousand levels down, and reads half a surrogate pair as NUL.
BRACKETS_MAX = 256
TOOL_START = b'"tool'  # searched for first, for three keys begin so
LEFT_LINES = 64  # so few lines around a broken one are not worth another attempt
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
DOUBTFUL = r"^(?:\[|\{|(?:true|false|-?[0-9][-+.0-9eE]*)$)"
DOUBTFUL_ID = r"^(?:\[|\{|true$|false$)|[.eE+]"
MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
TEXTS = ("prompt", "response", "segment")
SCHEMA = dict.fromkeys((*TEXTS, "id"), pl.String) | {"messages": MESSAGES}
# A line with one of these keys is of another shape, or has what the fast path doesn't know.
FOREIGN = (
    "tools",
    *TEMPLATE_KEYS,
    *(key for name, shape in SHAPES.items() if name not in ("plain", "chat") for key in shape.keys),
)


@dataclass(frozen=True)
class Measured:
    """Rows that the fast path has read. ``indices``: which of those it was given; the lists are parallel to it."""

    frame: pl.DataFrame
    indices: list[int]

    @property
    def canonical(self) -> list[str]:
        return self.frame["canonical"].to_list()

    @property
    def prompt_characters(self) -> list[int]:
        return self.frame["prompt_characters"].to_list()

    @property
    def asked_characters(self) -> list[int]:
        return self.frame["asked_characters"].to_list()

    @property
    def response_characters(self) -> list[int]:
        return self.frame["response_characters"].to_list()

    @property
    def segments(self) -> list[str | None]:
        return self.frame["segment"].to_list()

    @property
    def plain_rows(self) -> int:
        return int(self.frame["plain"].sum())

    def rows(self, positions: list[int], places: list[tuple[str, str]]) -> list[Row]:
        """Return the rows at these positions with their text. ``places``: id of one without, and its place."""
        wanted = self.frame.select("id", "segment", "messages", "response")[positions]
        return [
            Row(
                given or row_id,
                segment,
                tuple(Message(message["role"], message["content"]) for message in messages),
                response,
                place,
            )
            for (given, segment, messages, response), (row_id, place) in zip(wanted.iter_rows(), places, strict=True)
        ]


def doubtful_lines(content: bytes, lines: list[bytes], columns: Mapping[str, str]) -> set[int]:
    """Return which of a chunk's JSON lines must not be given to polars at all."""
    prompt, messages = (_quoted(name, columns) for name in ("prompt", "messages"))
    found = {
        index
        for index, line in enumerate(lines)
        if line.count(b"[") + line.count(b"{") > BRACKETS_MAX
        # Of a repeated key polars takes the first, every other reader the last.
        or line.count(prompt) + line.count(messages) > 1
    }
    calls = TOOL_START not in content and "tools" not in columns
    for key in (_quoted(name, columns) for name in FOREIGN if not (calls and name.startswith("tool"))):
        if key in content:
            found |= {index for index, line in enumerate(lines) if key in line}
    if SURROGATE.search(content):
        found |= {index for index, line in enumerate(lines) if SURROGATE.search(line)}
    return found


def _quoted(name: str, columns: Mapping[str, str]) -> bytes:
    """Return a key as it stands in JSON; inside a text its quotes would be escaped."""
    return f'"{columns.get(name, name)}"'.encode()


def of_lines(lines: list[bytes], columns: Mapping[str, str]) -> list[tuple[int, pl.DataFrame]]:
    """Parse JSON lines: frames of adjacent lines, each with the index of its first. ``columns``: our name -> the log's.

    Where polars refuses, the lines are halved until a few are left, which no frame holds.
    """
    theirs = {columns.get(name, name): kind for name, kind in SCHEMA.items()}
    ours = {column: name for name, column in columns.items() if name in SCHEMA}
    found: list[tuple[int, pl.DataFrame]] = []
    ranges = [(0, len(lines))]
    while ranges:
        start, end = ranges.pop()
        frame = _parsed(lines[start:end], theirs)
        if frame is not None:
            found.append((start, frame.rename(ours)))
        elif end - start > LEFT_LINES:
            middle = (start + end) // 2
            ranges += [(middle, end), (start, middle)]
    return found


def _parsed(lines: list[bytes], schema: Mapping[str, Any]) -> pl.DataFrame | None:
    try:
        frame = pl.read_ndjson(b"\n".join(lines), schema=dict(schema))
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    return frame if frame.height == len(lines) else None


def measure(frames: list[tuple[int, pl.DataFrame]], shape: str | None) -> Measured | None:
    """Return the rows that are certainly plain or chat, measured; None of no rows. Absent columns are empty."""
    if not frames:
        return None
    frame = pl.concat([found.with_row_index("index", offset=start) for start, found in frames])
    absent = [pl.lit(None, dtype=kind).alias(name) for name, kind in SCHEMA.items() if name not in frame.columns]
    frame = frame.with_columns(absent)
    frame = frame.filter(_certain(shape))
    answered = pl.col("response").is_null() & (pl.col("messages").list.last().struct.field("role") == "assistant")
    said = pl.col("messages").list
    frame = frame.with_columns(
        plain=pl.col("messages").is_null(),
        response=pl.when(answered).then(said.last().struct.field("content")).otherwise(pl.col("response")),
        messages=pl.when(answered).then(said.head(said.len() - 1)).otherwise(pl.col("messages")),
        segment=pl.when(pl.col("segment") != "").then(pl.col("segment")),
    )
    one = pl.concat_list(pl.struct(pl.lit("user").alias("role"), pl.col("prompt").alias("content")))
    frame = frame.with_columns(messages=pl.when("plain").then(one).otherwise(pl.col("messages")))
    frame = frame.filter(pl.col("messages").list.len() > 0)
    role, content = (pl.element().struct.field(name) for name in ("role", "content"))
    text = pl.format("{}" + UNIT + "{}" + UNIT + "{}", role, content.str.len_chars(), content)
    asked = pl.when(role != "system").then(content.str.strip_chars(BLANKS).str.len_chars())
    said = pl.col("messages").list
    frame = frame.with_columns(
        canonical=said.eval(text).list.join(RECORD),
        prompt_characters=said.eval(content.str.len_chars()).list.sum(),
        asked_characters=said.eval(asked).list.sum(),
        response_characters=pl.col("response").str.len_chars().fill_null(0),
    )
    return Measured(frame, frame["index"].to_list())


def _certain(shape: str | None) -> pl.Expr:
    """Whether a row is plain or chat, with nothing in it that another type could hide behind."""
    element = pl.element().struct
    odd_message = (
        element.field("role").is_in(ROLES).fill_null(False).not_()
        | element.field("content").is_null()
        | element.field("content").str.contains(DOUBTFUL)
    )
    plain, chat = pl.col("prompt").is_not_null(), pl.col("messages").is_not_null()
    wanted: Any = {None: plain ^ chat, "plain": plain & ~chat, "chat": chat & ~plain}.get(shape, pl.lit(False))
    return pl.all_horizontal(
        wanted,
        *(~pl.col(name).str.contains(DOUBTFUL).fill_null(False) for name in TEXTS),
        ~pl.col("id").str.contains(DOUBTFUL_ID).fill_null(False),
        ~pl.col("messages").list.eval(odd_message).list.any().fill_null(False),
        pl.col("messages").list.len().fill_null(1) > 0,
    )
