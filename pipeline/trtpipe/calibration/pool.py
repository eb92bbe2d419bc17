"""The rows of smallest keyed hash: a uniform sample of the log that stays itself as the log grows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtpipe.calibration.row import Row

SLACK = 2  # how many times its size a pool may have before it is cut back


class Pool:
    """Keeps the ``size`` rows of smallest identity, and at least ``per_segment`` of each given segment.

    The rows below ``uniform_limit`` are a uniform sample of all distinct rows; those above it, of rare segments, are
    a uniform sample of their segment only.
    """

    def __init__(self, size: int, per_segment: int) -> None:
        self.size = size
        self.per_segment = per_segment
        self._rows: dict[bytes, Row] = {}
        self._limit: bytes | None = None
        self._segment_limits: dict[str | None, bytes] = {}

    def wants(self, identity: bytes, segment: str | None) -> bool:
        if self._limit is None or identity <= self._limit:
            return True
        limit = self._segment_limits.get(segment)
        return limit is None or identity <= limit

    def add(self, identity: bytes, row: Row) -> None:
        self._rows[identity] = row
        if len(self._rows) > SLACK * (self.size + self.per_segment * len(self._segment_limits)):
            self.settle()

    def settle(self) -> None:
        """Cut the pool back to its size and order it."""
        ordered = sorted(self._rows)
        if len(ordered) <= self.size:
            self._rows = {identity: self._rows[identity] for identity in ordered}
            return
        self._limit = ordered[self.size - 1]
        of_segment: dict[str | None, list[bytes]] = defaultdict(list)
        for identity in ordered:
            of_segment[self._rows[identity].segment].append(identity)
        kept = set(ordered[: self.size])
        for segment, identities in of_segment.items():
            kept.update(identities[: self.per_segment])
            if len(identities) >= self.per_segment:
                self._segment_limits[segment] = identities[self.per_segment - 1]
        self._rows = {identity: self._rows[identity] for identity in ordered if identity in kept}

    @property
    def rows(self) -> list[Row]:
        """All rows, smallest identity first."""
        return list(self._rows.values())

    @property
    def uniform_rows(self) -> int:
        """How many of the first rows are a uniform sample of the log."""
        return min(self.size, len(self._rows))

    @property
    def whole_log(self) -> bool:
        """Whether no row was left out."""
        return self._limit is None
