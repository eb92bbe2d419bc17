"""The pool is the rows of smallest keyed hash, whatever the order of the log; every row is counted once."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.read_logs import counted
from calibration.tiny import row, write_log
from trtpipe.calibration import census
from trtpipe.calibration.pool import Pool
from trtpipe.calibration.row import rank
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def filled(names: list[str], size: int, per_segment: int) -> Pool:
    pool = Pool(size, per_segment)
    for name in names:
        one = row(name, segment="rare" if name.startswith("0") else "common")
        identity = rank(one.canonical, 0)
        if pool.wants(identity, one.segment):
            pool.add(identity, one)
    pool.settle()
    return pool


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 10), st.randoms(use_true_random=False))
def test_the_smallest_hashes_and_some_of_each_segment(
    count: int, size: int, per_segment: int, shuffler: random.Random
) -> None:
    names = [str(number) for number in range(count)]
    ordered = sorted(names, key=lambda name: rank(row(name).canonical, 0))
    rare = [name for name in ordered if name.startswith("0")]
    common = [name for name in ordered if not name.startswith("0")]
    wanted = {*ordered[:size], *rare[:per_segment], *common[:per_segment]} if count > size else set(names)
    shuffler.shuffle(names)
    pool = filled(names, size, per_segment)
    assert [one.messages[0].content for one in pool.rows] == [name for name in ordered if name in wanted]
    assert pool.uniform_rows == min(size, count)
    assert pool.whole_log == (count <= size)


def test_every_row_is_counted_once(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{number}"} for number in range(40)] + [{"prompt": "p1"}, {"prompt": "  "}, {"prompt": "x"}]
    path = write_log(tmp_path, b"\n".join(json.dumps(one).encode() for one in rows) + b"\nnothing\n\n")
    found = counted(path, pool_rows=10, characters_min=2)
    assert found.ledger.rows == 44
    assert found.ledger.dropped == {"exact duplicate": 1, "blank": 1, "too short": 1, "unreadable: not JSON": 1}
    assert found.distinct == sum(found.segments.values()) == 40
    assert found.blank_lines == 1
    assert len(found.pool.rows) == 10
    census.refuse_bad(found, 0.05, "log")
    with pytest.raises(ConfigError, match="not JSON"):
        census.refuse_bad(found, 0.01, "log")


def test_a_log_of_nothing_is_refused_with_its_ledger(tmp_path: Path) -> None:
    path = write_log(tmp_path, b'{"prompt": ""}\n\n')
    with pytest.raises(ConfigError, match=r"no prompts in the file\(s\).*1 blank"):
        census.refuse_bad(counted(path), 0.0, str(path))


def test_what_names_every_row_is_no_segment(tmp_path: Path) -> None:
    path = write_log(tmp_path, [{"prompt": str(number), "segment": str(number)} for number in range(201)])
    with pytest.raises(ConfigError, match="more than 200 segments"):
        counted(path)
