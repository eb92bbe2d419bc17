"""Every route to the served release says the same: two models, HTTP and gRPC, in one piece and as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from served_metrics import Metrics
from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import client, exchange, grpc_messages
from trtpipe.triton_repo.server import Server
from workspaces import trtpipe

pytestmark = pytest.mark.e2e

PROMPT = "Name three things that a delivery note must say. \u8bf7\u7528\u4e2d\u6587\u56de\u7b54\u3002"
IDS = [1, 504, 338]
ENDLESS_TOKENS = 1500  # most of a minute
ROUTES = list(product(exchange.MODELS, ("http", "grpc"), (False, True)))


def url(running: Server, scheme: str) -> str:
    addresses = running.addresses
    return addresses.http_url if scheme == "http" else addresses.grpc_url


def in_flight(metrics: Metrics) -> float:
    return metrics("nv_trt_llm_request_metrics", "active")


def endless(*, stream: bool) -> dict[str, Any]:
    """Inputs for an answer that goes on to its last token."""
    return {"text_input": PROMPT, "max_tokens": ENDLESS_TOKENS, "end_id": -1, "stream": stream}


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


@contextmanager
def freed_early(metrics: Metrics) -> Iterator[None]:
    """Check that what is cancelled within the block leaves the engine at once, long before its last token."""
    cancelled = metrics("trtpipe_request_outcomes", "cancelled")
    yield
    metrics.until_free(limit_s=5)
    metrics.until(lambda: metrics("trtpipe_request_outcomes", "cancelled") == cancelled + 1, limit_s=1)


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_leaving_a_stream_of_bls_frees_the_engine(settled: Metrics, running: Server, scheme: str) -> None:
    with (
        freed_early(settled),
        client.Client(url(running, scheme)) as asking,
        asking.stream(PROMPT, max_tokens=ENDLESS_TOKENS, end_id=-1) as texts,
    ):
        next(texts)
        assert in_flight(settled) == 1


def test_giving_up_on_a_unary_grpc_request_of_bls_frees_the_engine(settled: Metrics, running: Server) -> None:
    """Over HTTP, Triton 2.51 does not notice that the client of a unary request has left."""
    with freed_early(settled), pytest.raises(ToolFailed, match="no answer within 1 s"):
        client.ask(
            url(running, "grpc"),
            PROMPT,
            max_tokens=ENDLESS_TOKENS,
            model="tensorrt_llm_bls",
            options={"end_id": -1},
            time_limit_s=1,
        )


def test_cancelling_a_grpc_stream_of_the_engine_itself_frees_it(settled: Metrics, running: Server) -> None:
    request = engine_request(request_output_len=ENDLESS_TOKENS, end_id=-1, streaming=True)
    with freed_early(settled), engine_call(running, request) as call:
        next(call)
        call.cancel()


def engine_request(**inputs: Any) -> messages.ModelInferRequest:
    return grpc_messages.request("tensorrt_llm", {"input_ids": IDS, "input_lengths": len(IDS), **inputs})


@contextmanager
def engine_call(running: Server, request: messages.ModelInferRequest) -> Iterator[Any]:
    address = url(running, "grpc").removeprefix(grpc_messages.SCHEME)
    with grpc.insecure_channel(address) as channel:
        yield GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([request]), timeout=60)


def test_ids_for_the_engine_itself_need_their_batch_dimension(settled: Metrics, running: Server) -> None:
    request = engine_request(request_output_len=2)
    with engine_call(running, request) as call:
        assert [response.error_message for response in call] == [""]
    request.inputs[0].ClearField("shape")
    request.inputs[0].shape.append(len(IDS))
    with engine_call(running, request) as call:
        assert all(response.error_message for response in list(call))


def test_an_answer_ends_at_its_ending_token_and_is_counted_up_to_it(settled: Metrics, running: Server) -> None:
    """Whichever token is named: here one that comes somewhere in the middle of a long answer."""

    def answer(**inputs: Any) -> dict[str, Any]:
        asked = {"input_ids": IDS, "input_lengths": len(IDS), "request_output_len": 200, **inputs}
        response = httpx.post(
            f"{running.addresses.http_url}/v2/models/tensorrt_llm/generate", json=asked, timeout=120, trust_env=False
        )
        found: dict[str, Any] = response.json()
        return found

    answer(end_id=-1)  # so that both find the same part of the prompt in the cache
    whole = answer(end_id=-1)["output_ids"]
    place = next(place for place, token in enumerate(whole) if place >= 20 and token not in whole[:place])
    ended = answer(end_id=whole[place], return_num_output_tokens=True)

    assert len(whole) == 200
    assert ended["output_ids"] == whole[:place]
    assert ended["sequence_length"] == ended["num_output_tokens"] == place


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_of_the_ensemble_is_stopped_by_its_id(settled: Metrics, running: Server, stream: bool) -> None:
    """Triton does not pass a cancellation on into an ensemble, but it passes the request's id on."""
    base = f"{running.addresses.http_url}/v2/models"
    body = {**endless(stream=stream), "id": "to be stopped"}
    stop = {"id": "to be stopped", "input_lengths": 0, "request_output_len": 0, "stop": True}
    path = "generate_stream" if stream else "generate"
    with ThreadPoolExecutor(1) as pool, freed_early(settled):
        asked = pool.submit(httpx.post, f"{base}/ensemble/{path}", json=body, timeout=60, trust_env=False)
        settled.until(lambda: settled("nv_trt_llm_request_metrics", "scheduled") == 1)
        stopped = httpx.post(f"{base}/tensorrt_llm/generate", json=stop, timeout=10, trust_env=False)
        assert stopped.status_code == 200
    assert asked.result().is_success == stream, "a stream ends where it stands, a unary request with an error"


def test_twenty_closed_sockets_leave_the_server_alive_and_the_engine_free(settled: Metrics, running: Server) -> None:
    cancelled = settled("trtpipe_request_outcomes", "cancelled")
    for _ in range(20):
        with (
            client.Client(running.addresses.http_url) as asking,
            asking.stream(PROMPT, max_tokens=ENDLESS_TOKENS, end_id=-1) as texts,
        ):
            next(texts)
    settled.until_free(limit_s=10)
    assert settled("trtpipe_request_outcomes", "cancelled") == cancelled + 20
    assert client.ask(running.addresses.http_url, "Hello", max_tokens=4).text


def test_ask_over_grpc(settled: Metrics, running: Server, workspace: Path) -> None:
    client.ask(url(running, "http"), PROMPT, max_tokens=24)
    expected = client.ask(url(running, "http"), PROMPT, max_tokens=24).text
    grpc_port = running.addresses.grpc_port
    options = ["--grpc", "--model=tensorrt_llm_bls", "--max-tokens=24", f"--set=serving.grpc_port={grpc_port}"]
    result = trtpipe("ask", PROMPT, *options, folder=workspace)
    assert result.code == 0, result.stderr
    assert result.stdout == expected + "\n"
