"""What became of the steps, whatever ends them."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from trtpipe.chain.acceptance.steps import NAMES, Steps
from trtpipe.errors import ToolFailed


def full_disk() -> dict[str, Any]:
    raise OSError(errno.ENOSPC, "No space left on device")


def failing() -> dict[str, Any]:
    raise ToolFailed("no", where="there", fix="so")


def test_steps_that_have_not_run_are_not_well() -> None:
    steps = Steps(lambda name: None)
    assert not steps.whole
    for name in NAMES[:-1]:
        assert steps.run(name, dict)
    assert not steps.whole
    steps.leave_out(NAMES[-1], "why")
    assert steps.whole


@pytest.mark.parametrize("work", [full_disk, failing])
def test_what_ends_a_step_is_in_the_document(work: Any) -> None:
    steps = Steps(lambda name: None)
    assert not steps.run("build", work)
    (fault,) = steps.faults
    assert steps.all()["build"].document()["errors"] == [fault.document()]
    assert steps.all()["package"].why == "build ended before"
    assert not steps.whole
