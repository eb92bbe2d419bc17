"""The metrics of a running server, for live tests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import httpx

from trtpipe.triton_repo.server import Server

HELD = (
    ("nv_trt_llm_request_metrics", "scheduled"),
    ("nv_trt_llm_request_metrics", "waiting"),
    ("nv_trt_llm_kv_cache_block_metrics", "used"),
)
STILL_S = 0.5  # tens of steps of the sample's engine


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

    def until_free(self, limit_s: float) -> None:
        """Wait until vLLM has let go of every request and block by its own account, and takes no more steps."""
        self.until(lambda: self("nv_trt_llm_request_metrics", "active") == 0, limit_s)
        for family, value in HELD:
            self.until(lambda family=family, value=value: self(family, value) == 0, limit_s=2)
        steps = self("nv_trt_llm_general_metrics", "iteration_counter")
        time.sleep(STILL_S)
        assert self("nv_trt_llm_general_metrics", "iteration_counter") == steps, "vLLM goes on with a request"
