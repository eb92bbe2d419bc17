"""Near copies among prompts: MinHash proposes pairs, the exact Jaccard similarity of their words decides.

Compared is what was said for a prompt alone: a system prompt that all rows share would make all rows near copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from zlib import crc32

from trtpipe.calibration.row import Row

PERMUTATIONS = 128
SHINGLE_WORDS = 3
# Words; of scripts without spaces between words each character is one.
WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
PROPOSED_BELOW = 0.1  # the index proposes pairs from so much below the limit, so that few above it are missed

Shingles = frozenset[int]


def shingles(text: str) -> Shingles:
    """Return hashes of every run of three words, lower-cased; a shorter text is one run."""
    words = WORDS.findall(text.lower())
    runs = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(crc32(" ".join(words[start : start + SHINGLE_WORDS]).encode()) for start in range(runs))


def similarity(ours: Shingles, theirs: Shingles) -> float:
    """Jaccard: shared runs over all runs."""
    shared = len(ours & theirs)
    return shared / (len(ours) + len(theirs) - shared)


def distinct(
    rows: Iterable[Row], limit: float, progress: Callable[[int], None] = lambda done: None
) -> tuple[list[Row], int]:
    """Return the rows without near copies of an earlier one, and how many were left out.

    ``limit``: similarity from which a row is a copy; 1 keeps all but rows of equal words.
    """
    # It brings scipy, which takes a second to import: a run that reuses its prompts should not wait for that.
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415

    index = MinHashLSH(threshold=max(limit - PROPOSED_BELOW, 0.1), num_perm=PERMUTATIONS)
    kept: list[Row] = []
    seen: list[Shingles] = []
    copies = 0
    empty = MinHash(num_perm=PERMUTATIONS, hashfunc=int)
    for number, row in enumerate(rows, start=1):
        ours = shingles(row.asked)
        sketch = empty.copy()  # drawing the permutations anew costs more than all the rest
        sketch.update_batch(ours)
        if any(similarity(ours, seen[found]) >= limit for found in index.query(sketch)):
            copies += 1
        else:
            index.insert(len(seen), sketch)
            seen.append(ours)
            kept.append(row)
        progress(number)
    return kept, copies


class Neighbours:
    """Tells exactly whether a prompt is a near copy of one of a set; for sets of some hundreds."""

    def __init__(self, rows: Iterable[Row], limit: float) -> None:
        self._seen = [shingles(row.asked) for row in rows]
        self._limit = limit

    def near(self, row: Row) -> bool:
        ours = shingles(row.asked)
        return any(similarity(ours, theirs) >= self._limit for theirs in self._seen)
