from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from trtpipe.calibration.ahead import ahead


def test_the_order_is_kept() -> None:
    assert list(ahead(iter(range(1, 50)))) == list(range(1, 50))
    assert list(ahead(iter([]))) == []


def test_the_next_part_is_made_while_this_one_is_used() -> None:
    made = threading.Event()

    def parts() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    for part in ahead(parts()):
        if part == 1:
            assert made.wait(5)


def test_a_fault_comes_where_its_part_would_have() -> None:
    def parts() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    seen: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(ahead(parts()))
    assert seen == [1]
