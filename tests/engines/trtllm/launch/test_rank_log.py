"""Ranks are told apart in the log, whichever Open MPI has written it."""

from __future__ import annotations

import pytest

from trtpipe.engines.trtllm.launch import rank_log


@pytest.mark.parametrize(
    "line", ["[1,2]<stdout>:text\n", "[prterun-host-77@1,2]<stderr>: text\n", "[1,2]<stdout>: text\n"]
)
def test_a_line_is_of_its_rank_in_open_mpi_4_and_5(line: str) -> None:
    assert rank_log.said_by(line) == (2, "text")


def test_of_each_rank_the_last_line_is_kept() -> None:
    log = ["mpirun says this\n", "[1,0]<stdout>:a\n", "[1,1]<stdout>:b\n", "[1,0]<stderr>:c\n", "[1,1]<stdout>:\n"]
    last = rank_log.last_lines(log)
    assert last == {0: "c", 1: "b"}
    assert rank_log.each_rank(last, 3) == "  | rank 0: c\n  | rank 1: b\n  | rank 2: (nothing)"
