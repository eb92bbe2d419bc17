"""Which rank said what in the log of `mpirun --tag-output`: the rank that stands apart tells where a start hangs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# [job,rank]<stdout>: of Open MPI 4 and, with a name before the job, of 5
TAG = re.compile(r"\[(?:[^\]]*@)?\d+,(\d+)\]<std(?:out|err)>:\s?(.*)")


def said_by(text: str) -> tuple[int, str] | None:
    """Return the rank and what it said of a line of the log; None where that is nothing."""
    tagged = TAG.match(text)
    return (int(tagged[1]), tagged[2].strip()) if tagged and tagged[2].strip() else None


def last_lines(log: Iterable[str]) -> dict[int, str]:
    """Return the last line of each rank that has said something."""
    return dict(found for text in log if (found := said_by(text)) is not None)


def each_rank(last: Mapping[int, str], ranks: int) -> str:
    """Return a line for each rank, for an error."""
    return "\n".join(f"  | rank {rank}: {last.get(rank, '(nothing)')}" for rank in range(ranks))
