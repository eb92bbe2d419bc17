"""Clients that are not ours against the served release: curl, and tritonclient's own over HTTP, gRPC and asyncio."""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
from tritonclient.utils import InferenceServerException

from served_metrics import Metrics
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

QUESTION = "What is the capital of France? Answer in one short sentence."
TOKENS = 16
LIMIT_S = 60.0


@pytest.fixture
def expected(settled: Metrics, server: str) -> str:
    """The text, once the prompt is in the cache."""
    client.ask(server, QUESTION, max_tokens=1)
    return client.ask(server, QUESTION, max_tokens=TOKENS).text


def curl(url: str, **body: Any) -> str:
    program = shutil.which("curl")
    if program is None:
        pytest.skip("there is no curl here")
    command = [program, "-sN", "--noproxy", "*", "--max-time", f"{LIMIT_S:g}", url, "-d", json.dumps(body)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("model", exchange.MODELS)
def test_curl(server: str, expected: str, model: str) -> None:
    url = f"{server}/v2/models/{model}"
    whole = json.loads(curl(f"{url}/generate", text_input=QUESTION, max_tokens=TOKENS))
    events = curl(f"{url}/generate_stream", text_input=QUESTION, max_tokens=TOKENS, stream=True).split("\n\n")
    pieces = [json.loads(event.removeprefix("data:"))["text_output"] for event in events if event]

    assert whole["text_output"] == "".join(pieces) == expected
    assert len(pieces) > 3


def inputs(module: Any, *, stream: bool) -> list[Any]:
    """Return the request's tensors in tritonclient's classes."""
    values = {
        "text_input": ("BYTES", np.array([[QUESTION.encode()]], dtype=np.object_)),
        "max_tokens": ("INT32", np.array([[TOKENS]], dtype=np.int32)),
        "stream": ("BOOL", np.array([[stream]])),
    }
    tensors = [module.InferInput(name, value.shape, kind) for name, (kind, value) in values.items()]
    for tensor, (_, value) in zip(tensors, values.values(), strict=True):
        tensor.set_data_from_numpy(value)
    return tensors


def text(result: Any) -> str:
    return b"".join(result.as_numpy("text_output").flatten()).decode()


def grpc_address(running: Server) -> str:
    return f"{running.addresses.host}:{running.addresses.grpc_port}"


@pytest.mark.parametrize("model", exchange.MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_tritonclient_over_grpc(running: Server, expected: str, model: str, stream: bool) -> None:
    found: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(grpc_address(running)) as asking:
        asking.start_stream(lambda result, error: found.put((result, error)))
        asking.async_stream_infer(
            model, inputs(tritonclient.grpc, stream=stream), request_id="theirs", enable_empty_final_response=True
        )
        texts, final = [], False
        while not final:
            result, error = found.get(timeout=LIMIT_S)
            assert error is None
            response = result.get_response()
            assert response.id == "theirs"
            final = response.parameters["triton_final_response"].bool_param
            texts += [text(result)] if response.outputs else []

    assert "".join(texts) == expected
    assert (len(texts) > 3) == stream


@pytest.mark.parametrize("model", exchange.MODELS)
def test_tritonclient_with_asyncio(running: Server, expected: str, model: str) -> None:
    async def ask() -> list[str]:
        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": model, "inputs": inputs(tritonclient.grpc.aio, stream=True)}

        async with tritonclient.grpc.aio.InferenceServerClient(grpc_address(running)) as asking:
            texts = []
            async for result, error in asking.stream_infer(requests(), stream_timeout=LIMIT_S):
                assert error is None
                texts.append(text(result))
            return texts

    texts = asyncio.run(ask())
    assert "".join(texts) == expected
    assert len(texts) > 3


def test_a_time_limit_of_tritonclient_is_refused_in_words(running: Server) -> None:
    found: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(grpc_address(running)) as asking:
        asking.start_stream(lambda result, error: found.put((result, error)))
        asking.async_stream_infer("ensemble", inputs(tritonclient.grpc, stream=False), timeout=1_000_000)
        _, error = found.get(timeout=LIMIT_S)

    assert "timeout has no effect" in str(error)


def test_tritonclient_over_http_sees_the_models_and_may_not_infer(server: str) -> None:
    """Its client knows `infer` alone, which Triton has not for models that may answer more than once."""
    with tritonclient.http.InferenceServerClient(server.removeprefix("http://")) as asking:
        assert asking.is_server_ready()
        assert asking.get_model_metadata("ensemble")["outputs"][0]["name"] == "text_output"
        with pytest.raises(InferenceServerException, match="decoupled"):
            asking.infer("ensemble", inputs(tritonclient.http, stream=False))
