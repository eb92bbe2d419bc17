"""Reading ahead: the next part of a log is parsed while this one is counted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")


def ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield ``parts`` in order, the next one being made in a thread: polars works there without holding this one up.

    What making one raises is raised where it would have been yielded.
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part
