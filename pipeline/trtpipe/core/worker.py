"""The child's side of ``core.process``: read the job, do the work, report events."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from trtpipe.core.process import EVENTS_VARIABLE
from trtpipe.errors import TrtpipeError, system_fault

if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # linux/prctl.h
# What the machine refuses, whatever the worker does; any other OSError is a fault of the worker's own.
REFUSALS = frozenset({
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENOSPC, errno.EPERM, errno.EROFS,
})  # fmt: skip
_RUST_ERROR = re.compile(r"\(os error (\d+)\)")


class Events:
    """Sends events to the parent. It is the worker's ``Reporter``."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_inheritable(fd, False)

    def send(self, event: str, **fields: Any) -> None:
        os.write(self._fd, json.dumps({"event": event, **fields}).encode() + b"\n")

    def stage(self, name: str, decision: str) -> None:
        self.note(f"{name}: {decision}")

    def progress(self, label: str, done: int, total: int) -> None:
        self.send("progress", label=label, done=done, total=total)

    def note(self, text: str) -> None:
        self.send("note", text=text)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent does, however the parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(work: Callable[[dict[str, Any], Events], dict[str, Any]]) -> None:
    """Run ``work`` on the job given on standard input, and end the process with its status."""
    die_with_parent()
    events = Events(int(os.environ.pop(EVENTS_VARIABLE)))
    events.send("started")  # fails where the parent has died before it was watched
    job = json.load(sys.stdin)
    try:
        result = work(job, events)
        sys.stdout.flush()  # Python would notice only at its end that the log's disk is full, and exit with 120
        events.send("result", result=result)
    except TrtpipeError as error:
        _fail(error, events)
    except Exception as fault:
        refused = _refusal(fault)
        if refused is None:
            raise
        with suppress(OSError):  # the log may be on the disk that is full
            traceback.print_exc()
        _fail(system_fault(refused), events)


def _fail(error: TrtpipeError, events: Events) -> NoReturn:
    events.send("errors", errors=[one.document() for one in error.each()])
    sys.exit(error.exit_code)


def _refusal(fault: Exception) -> OSError | None:
    """Return what the system refused, if that is what went wrong; libraries in Rust say it in their text only."""
    if isinstance(fault, OSError):
        return fault if fault.errno in REFUSALS else None
    told = _RUST_ERROR.search(str(fault))
    number = int(told[1]) if told else 0
    return OSError(number, os.strerror(number)) if number in REFUSALS else None
