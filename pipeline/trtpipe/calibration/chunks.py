"""Cut a stream of bytes into pieces that end where a record ends, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from trtpipe.calibration.files import BOM
from trtpipe.errors import ConfigError

CHUNK_BYTES = 16 << 20
RECORD_BYTES_MAX = 256 << 20  # a file without line ends must not fill the memory
QUOTE = b'"'


@dataclass(frozen=True)
class Chunk:
    """Whole records. ``line``: number of the first line. ``offset``: of the first byte, BOM and all before counted."""

    content: bytes
    line: int
    offset: int
    bom_removed: bool = False


def chunks(stream: IO[bytes], *, quoted: bool, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield the stream's chunks; ``quoted``: line ends between double quotes end no record, as in CSV.

    Raises ConfigError where one record is larger than 256 MiB.
    """
    rest, line, offset = b"", 1, 0
    bom = False
    while True:
        read = stream.read(chunk_bytes)
        if offset == 0 and not rest and read.startswith(BOM):
            read, offset, bom = read[len(BOM) :], len(BOM), True
        content = rest + read
        end = _end_of_records(content, quoted=quoted) if read else len(content)
        if end:
            piece, rest = content[:end], content[end:]
            yield Chunk(piece, line, offset, bom_removed=bom and line == 1)
            line += piece.count(b"\n")
            offset += end
        else:
            rest = content
        if not read:
            return
        if len(rest) > RECORD_BYTES_MAX:
            raise ConfigError(
                f"a record is larger than {RECORD_BYTES_MAX >> 20} MiB",
                where=f"line {line}, byte offset {offset}",
                fix="end each record with a line feed; in CSV, close the double quotes",
            )


def _end_of_records(content: bytes, *, quoted: bool) -> int:
    """Return where the last whole record ends, 0 where none does."""
    end = content.rfind(b"\n") + 1
    if not quoted:
        return end
    odd = content.count(QUOTE, 0, end) % 2
    while end and odd:
        previous = content.rfind(b"\n", 0, end - 1) + 1
        odd ^= content.count(QUOTE, previous, end) % 2
        end = previous
    return end
