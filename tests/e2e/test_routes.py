"""Every route to the served release says the same: two models, HTTP and gRPC, in one piece and as a stream."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import grpc
import httpx
import pytest
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from served_metrics import Metrics
from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import client, grpc_route
from trtpipe.triton_repo.server import Server
from workspaces import trtpipe

pytestmark = pytest.mark.e2e

PROMPT = "Name three things that a delivery note must say. \u8bf7\u7528\u4e2d\u6587\u56de\u7b54\u3002"
ROUTES = list(product(client.MODELS, ("http", "grpc"), (False, True)))


def url(running: Server, scheme: str) -> str:
    addresses = running.addresses
    return addresses.http_url if scheme == "http" else f"grpc://{addresses.host}:{addresses.grpc_port}"


def in_flight(metrics: Metrics) -> float:
    return metrics("nv_trt_llm_request_metrics", "active")


def test_all_routes_give_the_same_text_in_the_same_cache_state(settled: Metrics, running: Server) -> None:
    client.ask(url(running, "http"), PROMPT, max_tokens=64)  # what follows meets a warm cache
    texts = {}
    for model, scheme, stream in ROUTES:
        settled.until(lambda: in_flight(settled) == 0)
        answer = client.ask(url(running, scheme), PROMPT, max_tokens=64, model=model, stream=stream)
        texts[model, scheme, stream] = answer.text
        assert (answer.chunks > 1) == stream
    assert len(set(texts.values())) == 1, texts


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_refusal_has_the_same_words_on_both_routes(running: Server, scheme: str) -> None:
    with pytest.raises(ToolFailed, match=r"2048"):
        client.ask(url(running, scheme), "word " * 5000, max_tokens=8, model="tensorrt_llm_bls")


def test_no_server_is_said_in_words_over_grpc() -> None:
    with pytest.raises(EnvironmentUnfit, match="no server answers"):
        client.ask("grpc://127.0.0.1:1", "Hello", max_tokens=4)


def test_a_cancelled_grpc_stream_of_bls_frees_the_engine(settled: Metrics, running: Server) -> None:
    inputs = {"text_input": PROMPT, "max_tokens": 1500, "stream": True, "end_id": -1}
    with grpc.insecure_channel(url(running, "grpc").removeprefix(grpc_route.SCHEME)) as channel:
        call = GRPCInferenceServiceStub(channel).ModelStreamInfer(
            iter([grpc_route.request("tensorrt_llm_bls", inputs)]), timeout=60
        )
        next(call)
        settled.until(lambda: in_flight(settled) == 1)
        call.cancel()
    started = time.monotonic()
    settled.until(lambda: in_flight(settled) == 0, limit_s=10)
    assert time.monotonic() - started < 5, "1500 tokens would take far longer"


def test_twenty_closed_sockets_leave_the_server_alive_and_the_engine_free(settled: Metrics, running: Server) -> None:
    body = {"text_input": PROMPT, "max_tokens": 1500, "stream": True, "end_id": -1}
    for number in range(20):
        # the ensemble does not pass a cancellation on: its one request runs to its end, so it is a short one
        model, tokens = ("ensemble", 100) if number == 0 else ("tensorrt_llm_bls", 1500)
        stream_url = f"{running.addresses.http_url}/v2/models/{model}/generate_stream"
        with httpx.stream(
            "POST", stream_url, json={**body, "max_tokens": tokens}, timeout=60, trust_env=False
        ) as response:
            next(response.iter_bytes())
    settled.until(lambda: in_flight(settled) == 0, limit_s=60)
    assert client.ask(running.addresses.http_url, "Hello", max_tokens=4).text


def test_ask_over_grpc(running: Server, workspace: Path) -> None:
    result = trtpipe(
        "ask",
        "What is the capital of France?",
        "--grpc",
        "--model=tensorrt_llm_bls",
        f"--set=serving.grpc_port={running.addresses.grpc_port}",
        folder=workspace,
    )
    assert result.code == 0, result.stderr
    assert "Paris" in result.stdout
