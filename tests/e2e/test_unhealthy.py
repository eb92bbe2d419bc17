"""The engine dies under load: its clients hear of it, the server is not ready, and a reload brings it back.

The last of the live tests: it kills the engine that they share.
"""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from served_metrics import Metrics
from trtpipe.errors import ToolFailed
from trtpipe.triton_repo import client, server
from trtpipe.triton_repo.aio_client import AsyncClient
from trtpipe.triton_repo.exchange import Model
from trtpipe.triton_repo.server import Server
from workspaces import trtpipe

pytestmark = pytest.mark.e2e

PROMPT = "What is the capital of France? Answer in one short sentence."
LOAD_LIMIT_S = 240


def core_of(running: Server) -> int:
    """Return the process in which vLLM computes."""
    found, todo = [], [running.supervisor.pid]
    while todo:
        pid = todo.pop()
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            todo += map(int, children.read_text().split())
        if "EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"):
            found.append(pid)
    (core,) = found
    return core


async def is_healthy(url: str) -> bool:
    """What the front answers at /health."""
    async with AsyncClient(url) as asking:
        return await asking.is_ready()


def test_a_dead_engine_is_told_and_comes_back_with_a_reload(settled: Metrics, running: Server, workspace: Path) -> None:
    url = running.addresses.http_url
    client.ask(url, PROMPT, max_tokens=1)
    expected = client.ask(url, PROMPT, max_tokens=16).text

    def ask(model: Model) -> str:
        options = {"end_id": -1, "id": f"asked-{model}"}
        return client.ask(url, PROMPT, max_tokens=1500, model=model, options=options).text

    with ThreadPoolExecutor(2) as pool:
        asked = {model: pool.submit(ask, model) for model in ("ensemble", "tensorrt_llm_bls")}
        settled.until(lambda: settled("nv_trt_llm_request_metrics", "scheduled") == 2)
        os.kill(core_of(running), signal.SIGKILL)
        with pytest.raises(ToolFailed, match="the engine has died; load the model again"):
            asked["ensemble"].result()
        with pytest.raises(ToolFailed, match="the engine "):
            asked["tensorrt_llm_bls"].result()

    settled.until(lambda: not server.is_ready(url))
    assert not asyncio.run(is_healthy(url))
    assert not httpx.get(f"{url}/v2/models/tensorrt_llm/ready", trust_env=False).is_success
    with pytest.raises(ToolFailed, match="ensemble"):
        client.ask(url, PROMPT, max_tokens=1)
    settled.until(
        lambda: "nv_trt_llm_request_metrics{" not in httpx.get(running.addresses.metrics_url, trust_env=False).text
    )
    log = running.log.read_text(errors="replace")
    assert "request asked-ensemble failed: the engine has died" in log

    ports = [f"--set=serving.{name}_port={port}" for name, port in running.addresses.by_purpose.items()]
    loaded = trtpipe("reload", *ports, f"--set=serving.ready_timeout_s={LOAD_LIMIT_S}", folder=workspace)
    assert loaded.code == 0, loaded.stderr
    settled.until(lambda: server.is_ready(url))
    assert asyncio.run(is_healthy(url))
    assert settled("nv_trt_llm_request_metrics", "max") > 0
    client.ask(url, PROMPT, max_tokens=1)
    assert client.ask(url, PROMPT, max_tokens=16).text == expected
    assert client.ask(url, PROMPT, max_tokens=16, model="tensorrt_llm_bls").text == expected
