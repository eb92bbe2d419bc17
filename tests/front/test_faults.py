"""What becomes of a request that Triton does not answer, or whose client leaves."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest

from front_requests import CHAT, chat, events
from stand_in_triton import StandIn, event


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "content", "expected", "code"),
    [
        (400, b'{"error": "min_tokens is 9"}', 400, None),
        (503, b'{"error": "the engine has died"}', 503, "unavailable"),
        (500, b'{"error": "no reason"}', 502, "engine_failed"),
    ],
)
def test_faults_of_the_engine_keep_their_words(
    front: httpx.Client, triton: StandIn, status: int, content: bytes, expected: int, code: str | None, stream: bool
) -> None:
    triton.status, triton.pieces = status, [content]

    response = chat(front, stream=stream)

    assert (response.status_code, response.json()["error"]["code"]) == (expected, code)
    assert json.loads(content)["error"] in response.json()["error"]["message"]
    assert triton.url not in response.text


def test_a_fault_within_a_stream_is_its_last_event(front: httpx.Client, triton: StandIn) -> None:
    triton.pieces = [event("so far"), b'data: {"error":"the engine has died"}\n\n']

    *_, piece, last = events(chat(front, stream=True))

    assert piece["choices"][0]["delta"] == {"content": "so far"}
    assert "the engine has died" in json.loads(last)["error"]["message"]


def test_without_triton_the_model_is_unavailable(start: Any) -> None:
    response = chat(start(triton_url="http://127.0.0.1:1"))
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_the_time_limit_ends_a_request(start: Any, served: Any, triton: StandIn) -> None:
    triton.say(*"abcdefghij")
    triton.gap_s = 0.5
    response = chat(start(limits=replace(served.limits, request_s=0.3)))
    assert (response.status_code, response.json()["error"]["code"]) == (504, "timeout")
    assert triton.left.wait(20)


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_ends_the_request_in_triton(front: httpx.Client, triton: StandIn, stream: bool) -> None:
    triton.say(*"abcdefghij" * 20)
    triton.gap_s = 0.1
    leave = suppress(httpx.ReadTimeout)  # that is how a client leaves that waits for a whole answer
    with leave, front.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": stream}, timeout=0.5) as response:
        next(response.iter_bytes())
    assert triton.left.wait(9)
