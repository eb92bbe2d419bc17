"""Runs a server as its only child and leaves nothing behind, however the server or the starter ends.

``python -m trtpipe.triton_repo.supervisor STARTER_PID SHM_PREFIX GRACE_S COMMAND...``

SIGTERM, or the death of the starter, ends the server politely and after ``GRACE_S`` seconds for good. Triton's
model processes outlive a crashed server and ignore SIGTERM, so whatever is left of them is killed, and their shared
memory is removed. The exit status is the server's; 128 + signal where a signal ended it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place that Triton uses
POLL_S = 0.1
# vLLM's core ends when it is asked to; Triton's model processes don't listen.
LEFTOVER_GRACE_S = 3.0


class _Ending:
    """When the server must be gone, once somebody has asked for the end."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self.asked = False
        self.deadline = float("inf")

    def ask(self, signal_number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.deadline = min(self.deadline, time.monotonic() + self._grace_s)


def main(starter: int, shm_prefix: str, grace_s: float, command: list[str]) -> int:
    ending = _Ending(grace_s)
    signal.signal(signal.SIGTERM, ending.ask)
    signal.signal(signal.SIGINT, ending.ask)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != starter:
        return 0  # it died before it could be watched
    server = subprocess.Popen(
        command,
        preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - this process has one thread
    )
    status = _wait(server, ending)
    _clear_descendants()
    for region in SHARED_MEMORY.glob(f"{shm_prefix}*"):
        region.unlink(missing_ok=True)
    return status if status >= 0 else 128 - status


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value)


def _wait(server: subprocess.Popen[bytes], ending: _Ending) -> int:
    signalled = False
    while (status := server.poll()) is None:
        if ending.asked and not signalled:
            server.terminate()
            signalled = True
        if time.monotonic() > ending.deadline:
            server.kill()
        time.sleep(POLL_S)
    return status


def _clear_descendants() -> None:
    """End what the server has left: as a subreaper this process is the parent of all orphans below it."""
    shared_memory = {path for pid in _descendants(os.getpid()) for path in _mapped_shared_memory(pid)}
    _signal(_descendants(os.getpid()), signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    while children := _children(os.getpid()):
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            _signal(_descendants(os.getpid()), signal.SIGKILL)
        time.sleep(POLL_S)
    for path in shared_memory:
        path.unlink(missing_ok=True)


def _signal(processes: list[int], signal_number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return [*children, *(below for child in children for below in _descendants(child))]


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process; none where it is gone."""
    try:
        return [
            int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
        ]
    except OSError:
        return []


def _mapped_shared_memory(pid: int) -> list[Path]:
    """Return what a process has mapped of /dev/shm: the semaphores of a killed one stay there."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []
    names = {line.split(maxsplit=5)[-1] for line in lines if f" {SHARED_MEMORY}/" in line}
    return [Path(name) for name in names if not name.endswith(" (deleted)")]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4:]))
