"""The client class, sync and asyncio, against a stand-in for Triton."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stand_in_triton import StandIn, event, stand_in_triton
from trtpipe.client import AsyncClient, Client, NoServer, OutOfTime, Piece, Refused
from trtpipe.errors import ToolFailed

NOBODY = ["http://127.0.0.1:1", "grpc://127.0.0.1:1"]


@pytest.fixture
def triton() -> Iterator[StandIn]:
    with stand_in_triton() as triton:
        yield triton


def generate_sync(url: str, prompt: Any = "x", retry_s: float = 0.0, **fields: Any) -> str:
    with Client(url, retry_s=retry_s) as client:
        return client.generate(prompt, **{"max_tokens": 5, **fields})


def generate_async(url: str, prompt: Any = "x", retry_s: float = 0.0, **fields: Any) -> str:
    async def ask() -> str:
        async with AsyncClient(url, retry_s=retry_s) as client:
            return await client.generate(prompt, **{"max_tokens": 5, **fields})

    return asyncio.run(ask())


def stream_sync(url: str, **fields: Any) -> list[str]:
    with Client(url) as client, client.stream("x", max_tokens=5, **fields) as texts:
        return list(texts)


def stream_async(url: str, **fields: Any) -> list[str]:
    async def ask() -> list[str]:
        async with AsyncClient(url) as client, client.stream("x", max_tokens=5, **fields) as texts:
            return [text async for text in texts]

    return asyncio.run(ask())


Generate = Callable[..., str]
Stream = Callable[..., list[str]]
both_generate = pytest.mark.parametrize("generate", [generate_sync, generate_async])
both_stream = pytest.mark.parametrize("stream", [stream_sync, stream_async])


def pieces_sync(url: str) -> list[Piece]:
    with Client(url) as client, client.pieces("x", max_tokens=5) as pieces:
        return list(pieces)


def pieces_async(url: str) -> list[Piece]:
    async def ask() -> list[Piece]:
        async with AsyncClient(url) as client, client.pieces("x", max_tokens=5) as pieces:
            return [piece async for piece in pieces]

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [pieces_sync, pieces_async])
def test_counts_are_asked_for_and_come_beside_the_texts(triton: StandIn, ask: Callable[[str], list[Piece]]) -> None:
    triton.say("a", "", num_input_tokens=7, num_output_tokens=2)

    assert ask(triton.url) == [Piece("a", 7, 2), Piece("", 7, 2)]
    assert triton.bodies[0]["return_num_input_tokens"] is triton.bodies[0]["return_num_output_tokens"] is True


def test_log_probabilities_come_as_a_list_also_where_there_is_one(triton: StandIn) -> None:
    told = [{"output_log_probs": values, "log_prob_ids": ids} for values, ids in (([-0.5, -1], [4, 5]), (-0.25, 6))]
    written = [json.dumps({"text_output": "a", **facts}) for facts in (*told, {"output_log_probs": []})]
    triton.pieces = [f"data: {document}\n\n".encode() for document in written]

    with Client(triton.url) as asking, asking.pieces("x", max_tokens=5, return_log_probs=True) as pieces:
        found = list(pieces)
    assert [piece.log_probs for piece in found] == [(-0.5, -1.0), (-0.25,), ()]
    assert [piece.log_prob_ids for piece in found] == [(4, 5), (6,), None]
    assert triton.bodies[0]["return_log_probs"] is True


@both_generate
def test_a_whole_answer(triton: StandIn, generate: Generate) -> None:
    triton.pieces = [b'{"text_output": "Paris"}']

    assert generate(triton.url, "Capital?", seed=3, stop_words=["."], request_id="mine") == "Paris"
    assert triton.bodies == [
        {"text_input": "Capital?", "max_tokens": 5, "stream": False, "seed": 3, "stop_words": ["."], "id": "mine"}
    ]


@both_stream
def test_a_stream(triton: StandIn, stream: Stream) -> None:
    triton.pieces = [bytes([byte]) for byte in event("语") + event(" \u2028") + event("!")]
    assert stream(triton.url) == ["语", " \u2028", "!"]


@both_stream
def test_a_bad_request_is_told_from_a_failure(triton: StandIn, stream: Stream) -> None:
    triton.pieces = [b'{"error": "too long"}']
    triton.status = 400
    with pytest.raises(Refused, match="too long"):
        stream(triton.url)
    triton.status = 500
    with pytest.raises(ToolFailed, match="too long") as caught:
        stream(triton.url)
    assert not isinstance(caught.value, Refused)


@both_stream
def test_the_time_limit_is_for_the_whole_answer(triton: StandIn, stream: Stream) -> None:
    triton.say(*"abcdefghij" * 10)
    triton.gap_s = 0.2
    started = time.monotonic()
    with pytest.raises(OutOfTime, match=r"within 0\.5 s"):
        stream(triton.url, time_limit_s=0.5)
    assert time.monotonic() - started < 10
    assert triton.left.wait(10)


def test_leaving_the_block_cancels(triton: StandIn) -> None:
    triton.say(*"abcdefghij")
    triton.gap_s = 0.1
    with Client(triton.url) as client, client.stream("x", max_tokens=5) as texts:
        assert next(texts) == "a"
    assert triton.left.wait(5)


def test_cancelling_the_task_cancels(triton: StandIn) -> None:
    triton.say(*"abcdefghij")
    triton.gap_s = 0.1

    async def leave() -> None:
        async with AsyncClient(triton.url) as client, client.stream("x", max_tokens=5) as texts:
            assert await anext(texts) == "a"
            waiting = asyncio.ensure_future(anext(texts))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(leave())
    assert triton.left.wait(5)


@both_generate
@pytest.mark.parametrize("url", NOBODY)
def test_where_nobody_answers_it_says_so_at_once(generate: Generate, url: str) -> None:
    started = time.monotonic()
    with pytest.raises(NoServer, match="no server answers"):
        generate(url)
    assert time.monotonic() - started < 3


@both_generate
@pytest.mark.parametrize("url", NOBODY)
def test_a_refused_connection_is_tried_again_for_so_long(generate: Generate, url: str) -> None:
    started = time.monotonic()
    with pytest.raises(NoServer):
        generate(url, retry_s=0.7)
    assert 0.7 <= time.monotonic() - started < 4


@both_generate
def test_a_server_that_comes_up_meanwhile_is_asked_once(generate: Generate) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = threading.Event()
    seen: list[dict[str, Any]] = []

    def later() -> None:
        time.sleep(1.5)  # more than a client needs for its first try
        with stand_in_triton(port) as triton:
            triton.pieces = [b'{"text_output": "here"}']
            done.wait(20)
            seen.extend(triton.bodies)

    server = threading.Thread(target=later)
    server.start()
    try:
        assert generate(f"http://127.0.0.1:{port}", retry_s=15) == "here"
    finally:
        done.set()
        server.join()
    assert len(seen) == 1


@both_stream
def test_what_may_have_been_sent_is_never_sent_again(triton: StandIn, stream: Stream) -> None:
    """A server that hangs up without a word may have begun to work."""
    triton.hangs_up = True
    with pytest.raises(ToolFailed, match="the connection broke"):
        stream(triton.url)
    assert len(triton.bodies) == 1
