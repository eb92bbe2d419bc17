"""Child processes: from a list of arguments, with a log file, a time limit and an orderly end.

Heavy libraries are imported only in workers: Python modules of this package that run in a child process, get
one JSON job and report events (progress, notes, the result, errors) as JSON lines on a pipe of their own, so
that whatever a library prints goes to the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from trtpipe.core import reproduction
from trtpipe.errors import ToolFailed, from_document, raise_all

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from trtpipe.core.progress import Reporter

EVENTS_VARIABLE = "TRTPIPE_EVENTS_FD"
STOP_GRACE_S = 10.0
# A worker whose result is there has only its own end left to do.
LINGER_S = 30.0
TAIL_BYTES = 1 << 16


def run_worker(
    module: str,
    job: Mapping[str, Any],
    *,
    log: Path,
    reporter: Reporter,
    time_limit_s: float,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run ``python -m module`` with ``job`` on its standard input and return the worker's result.

    Beside the log it leaves ``job.json`` and ``reproduce.sh``, which run the worker again by hand. Raises the
    error that the worker reported, or ToolFailed with the last lines of the log when it died or ran out of
    time. Whatever the worker itself started ends with it.
    """
    reproduction.of_worker(log.parent, module, job, environment or {})
    read_fd, write_fd = os.pipe()
    child_environment = {**os.environ, **(environment or {}), EVENTS_VARIABLE: str(write_fd)}
    with log.open("ab") as log_file, tempfile.TemporaryFile() as job_file:
        job_file.write(json.dumps(job).encode())
        job_file.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-m", "trtpipe.core.attached", str(os.getpid()), module],
            stdin=job_file,
            stdout=log_file,
            stderr=log_file,
            env=child_environment,
            pass_fds=(write_fd,),
            start_new_session=True,
        )
    os.close(write_fd)
    try:
        result = _follow(child, read_fd, time.monotonic() + time_limit_s, reporter)
        status = _end_of(child, reporter)
    except TimeoutError:
        raise ToolFailed(
            f"{module} did not finish within {time_limit_s:.0f} s\n{tail(log)}",
            where=str(log),
            fix="see the log; a busy or small machine may need a higher time limit",
        ) from None
    finally:
        stop(child)
        os.close(read_fd)
    if result is None or status != 0:
        raise ToolFailed(f"{module} ended early: {ending(status)}\n{tail(log)}", where=str(log), fix="see the log")
    return result


def _follow(child: subprocess.Popen[bytes], read_fd: int, deadline: float, reporter: Reporter) -> dict[str, Any] | None:
    """Pass on what the worker reports until its result comes, and return that; None where it ends without one."""
    with contextlib.closing(_events(child, read_fd, deadline)) as events:
        for event in events:
            match event["event"]:
                case "progress":
                    reporter.progress(event["label"], event["done"], event["total"])
                case "note":
                    reporter.note(event["text"])
                case "errors":
                    raise_all([from_document(document) for document in event["errors"]])
                case "result":
                    result: dict[str, Any] = event["result"]
                    return result
    return None


def _end_of(child: subprocess.Popen[bytes], reporter: Reporter) -> int:
    """Return the status of a worker that has sent its last event; 0 for one that has to be ended."""
    try:
        return child.wait(LINGER_S)
    except subprocess.TimeoutExpired:
        reporter.note(f"the worker hung for {LINGER_S:.0f} s after its result and was ended")
        return 0


def _events(child: subprocess.Popen[bytes], read_fd: int, deadline: float) -> Generator[dict[str, Any], None, None]:
    """Yield the worker's events until it has ended; processes it started may keep the pipe open for longer.

    Raises TimeoutError after the deadline.
    """
    buffer = b""
    end_fd = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(read_fd, selectors.EVENT_READ)
            selector.register(end_fd, selectors.EVENT_READ)
            while (remaining := deadline - time.monotonic()) > 0:
                ready = [key.fd for key, _ in selector.select(remaining)]
                chunk = os.read(read_fd, 1 << 16) if read_fd in ready else b""
                *lines, buffer = (buffer + chunk).split(b"\n")
                yield from map(json.loads, lines)
                if not chunk and end_fd in ready:
                    return
                if not chunk and read_fd in ready:
                    selector.unregister(read_fd)
        raise TimeoutError
    finally:
        os.close(end_fd)


def ending(status: int) -> str:
    """Return how a child ended, in words."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def stop(child: subprocess.Popen[bytes] | subprocess.Popen[str], grace_s: float = STOP_GRACE_S) -> None:
    """End a child and everything in its process group: first politely, then for good."""
    try:
        if child.poll() is None:
            _signal_group(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
    finally:  # also when a second Ctrl-C ends the waiting
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()


def _signal_group(group: int, signal_number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal_number)


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log (of its last 64 KiB), indented, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return "  (no log)"
    return "\n".join(f"  | {line}" for line in text.splitlines()[-lines:])
