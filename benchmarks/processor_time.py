"""Processor time by what a process does: Triton, each of its models, vLLM's two processes, and this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def spent(root: int, into: dict[str, float]) -> Iterator[None]:
    """Add to ``into`` the seconds that a block has cost in ``root``, in all processes below it and in this one."""
    before = _seconds(root)
    yield
    for (role, pid), seconds in _seconds(root).items():
        into[role] = into.get(role, 0.0) + seconds - before.get((role, pid), 0.0)


def _seconds(root: int) -> dict[tuple[str, int], float]:
    top, client = psutil.Process(root), psutil.Process(os.getpid())
    found = {}
    for process in (client, top, *top.children(recursive=True)):
        times = process.cpu_times()
        found["client" if process == client else _role(process), process.pid] = times.user + times.system
    return found


def _role(process: psutil.Process) -> str:
    command = process.cmdline()
    whole = " ".join(command)
    if "triton_python_backend_stub" in whole:
        return next((path.parent.parent.name for path in map(Path, command) if path.name == "model.py"), "stub")
    for sign, role in (
        ("triton_repo.supervisor", "supervisor"),
        ("bin/tritonserver", "tritonserver"),
        ("--bare", "AsyncLLM"),
        ("resource_tracker", "vLLM's tracker"),
    ):
        if sign in whole:
            return role
    return "engine core"
