"""A started engine, watched: its log passed on, the last line of each rank kept, and an end where it hangs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.core.process import ending, stop
from trtpipe.engines.trtllm.launch import rank_log
from trtpipe.engines.trtllm.launch.line import EXIT_TIMEOUT_S
from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

POLL_S = 0.5
REQUEST_LIMIT_S = 5
STOP_GRACE_S = EXIT_TIMEOUT_S + 20.0
READY = "/v2/models/ensemble/ready"  # the server's own health ignores models that are not loaded
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the environment's proxy is not for loopback


class Watched:
    """A running line. ``last_lines``: of each rank that has said something."""

    def __init__(self, line: Sequence[str], folder: Path) -> None:
        """Start it. ``folder``: where it runs; the engine model's folders are seen from there."""
        self.last_lines: dict[int, str] = {}
        self.child = subprocess.Popen(
            line, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def _pass_on(self) -> None:
        if self.child.stdout is None:
            return
        for text in self.child.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
            if (said := rank_log.said_by(text)) is not None:
                self.last_lines[said[0]] = said[1]

    def wait_until_ready(self, http_port: int, ranks: int, time_limit_s: float) -> float:
        """Return the seconds that it took. Raises ToolFailed with each rank's last line where it ended, or hangs."""
        started = time.monotonic()
        while not is_ready(http_port):
            if self.child.poll() is not None:
                raise self._failed(f"the engine did not start: {self._ending()}", ranks)
            if time.monotonic() - started > time_limit_s:
                raise self._failed(f"the engine was not ready within {time_limit_s:g} s", ranks)
            time.sleep(POLL_S)
        return time.monotonic() - started

    def wait(self, ranks: int) -> None:
        """Return never by itself: raise ToolFailed where it ends without having been asked to."""
        self.child.wait()
        raise self._failed(f"the engine ended by itself: {self._ending()}", ranks)

    def stop(self) -> None:
        """End it and all ranks: requests in flight first."""
        stop(self.child, STOP_GRACE_S)
        self._reader.join(POLL_S)

    def _ending(self) -> str:
        self._reader.join(POLL_S)  # what was said last is still on its way
        return ending(self.child.returncode)

    def _failed(self, what: str, ranks: int) -> ToolFailed:
        said = rank_log.each_rank(self.last_lines, ranks)
        return ToolFailed(
            f"{what}\n{said}",
            where="the ranks' last lines",
            fix="look at the rank that stands apart; a hang of all is often /dev/shm or NCCL (NCCL_DEBUG=INFO tells)",
        )


def is_ready(http_port: int) -> bool:
    """True where rank 0 answers requests."""
    try:
        with DIRECT.open(f"http://127.0.0.1:{http_port}{READY}", timeout=REQUEST_LIMIT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False
