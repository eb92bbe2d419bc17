"""What a killed or ended run may have left: processes and shared memory."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def processes_in(folder: Path) -> dict[int, str]:
    """Return the processes that work in a folder or below it: our children inherit it, and servers have one in it."""
    found, whole = {}, folder.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(whole):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command:  # a dead process that waits to be collected has none
                    found[int(process.name)] = command
    return found


def shared_memory() -> set[Path]:
    return set(SHARED_MEMORY.iterdir())


def none_in(folder: Path, within_s: float) -> bool:
    """True once no process is left there."""
    deadline = time.monotonic() + within_s
    while processes_in(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
