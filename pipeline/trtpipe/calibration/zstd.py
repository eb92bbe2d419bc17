"""A zstd file as a stream that notices when it ends early; the package's own reader ends there in silence."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_BYTES = 1 << 20


class ZstdStream(io.RawIOBase):
    """Decompresses one frame after the other. Reading raises EOFError where the last one is not whole."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            if not self._decompress():
                return 0
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self) -> bool:
        """Get more bytes ready; False at the end of the file."""
        content = self._frame.unused_data if self._frame.eof else b""
        content = content or self._raw.read(READ_BYTES)
        if not content:
            if self._begun and not self._frame.eof:
                raise EOFError("the last frame is not whole")
            return False
        if self._frame.eof:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = True
        self._ready = memoryview(self._frame.decompress(content))
        return True
