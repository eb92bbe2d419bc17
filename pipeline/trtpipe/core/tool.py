"""Programs that are none of ours: run from a list of words, with a log that is followed, a time limit and an end."""

from __future__ import annotations

import subprocess
import sys
import time
from os import getpid
from typing import TYPE_CHECKING

from trtpipe.core.process import ending, stop, tail
from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import BufferedReader
    from pathlib import Path

POLL_S = 0.2


def run_tool(
    command: Sequence[str],
    *,
    log: Path,
    time_limit_s: float,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
) -> str | None:
    """Run a program whose output goes to ``log``; ``on_line`` gets each whole line.

    Returns None, or how it ended if that was not with 0. Raises ToolFailed when it runs out of time. Whatever it
    started ends with it, also when this process is stopped or killed.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "trtpipe.core.attached_tool", str(getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        with log.open("rb") as text:
            status = _follow(child, text, time.monotonic() + time_limit_s, on_line)
    except TimeoutError:
        raise ToolFailed(
            f"{command[0]} did not finish within {time_limit_s:.0f} s\n{tail(log)}",
            where=str(log),
            fix="see the log; a slow or busy machine may need a higher time limit",
        ) from None
    finally:
        stop(child)
    return None if status == 0 else ending(status)


def _follow(
    child: subprocess.Popen[bytes], text: BufferedReader, deadline: float, on_line: Callable[[str], None]
) -> int:
    buffer = b""
    while True:
        status = child.poll()
        *lines, buffer = (buffer + text.read()).split(b"\n")
        for line in lines:
            on_line(line.decode(errors="replace"))
        if status is not None:
            return status
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(POLL_S)
