"""The metrics of a running server, for live tests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import httpx

from trtpipe.triton_repo.server import Server


class Metrics:
    """The server's metrics, read anew at each call."""

    def __init__(self, running: Server) -> None:
        self._url = running.addresses.metrics_url

    def __call__(self, family: str, value: str) -> float:
        text = httpx.get(self._url, timeout=10, trust_env=False).text
        found = re.findall(rf'^{family}{{[^}}]*"{value}"[^}}]*}} (\S+)$', text, flags=re.MULTILINE)
        assert len(found) == 1, f"{family} {value}: {found}"
        return float(found[0])

    def until(self, condition: Callable[[], bool], limit_s: float = 30) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.05)
