"""Going over from one server to another: nothing is dropped, and the one before is done with when it may end."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from front_requests import CHAT
from stand_in_triton import StandIn, stand_in_triton
from trtpipe.front import app, server
from trtpipe.front.settings import Served

PATH = "/v1/chat/completions"


@pytest.fixture
def second() -> Iterator[StandIn]:
    with stand_in_triton() as triton:
        triton.say("second")
        yield triton


@contextmanager
def going_over(
    served: Served, to: Served, log: Path, limit_s: float
) -> Iterator[tuple[httpx.Client, Callable[[], int]]]:
    """Give a client of a front, and what makes that front go over: it returns how many requests were left."""
    gate, taken = app.build(served), server.bind("127.0.0.1", 0)
    ready, asked, over, stop = (threading.Event() for _ in range(4))
    left: list[int] = []

    async def until() -> None:
        await asyncio.to_thread(asked.wait)
        left.append(await gate.backends.go_over(to, limit_s=limit_s))
        over.set()
        await server.ended(stop.is_set)

    def go_over() -> int:
        asked.set()
        assert over.wait(20)
        return left[0]

    front = threading.Thread(
        target=server.run,
        args=(gate, taken),
        kwargs={"drain_s": 1.0, "log": log, "on_ready": ready.set, "until": until},
    )
    front.start()
    try:
        assert ready.wait(20)
        with httpx.Client(base_url=address(taken), trust_env=False, timeout=30) as client:
            yield client, go_over
    finally:
        stop.set()
        asked.set()
        front.join()


def address(taken: socket.socket) -> str:
    return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_running_stream_ends_where_it_began_and_new_requests_go_to_the_other(
    served: Served, triton: StandIn, second: StandIn, tmp_path: Path
) -> None:
    triton.say(*"first")
    triton.gap_s = 0.3
    to = replace(served, triton_url=second.url, created=served.created + 1)
    with (
        going_over(served, to, tmp_path / "log", limit_s=20) as (client, go_over),
        ThreadPoolExecutor(1) as pool,
        client.stream("POST", PATH, json={**CHAT, "stream": True}) as response,
    ):
        lines = response.iter_lines()
        next(lines)
        going = pool.submit(go_over)
        while client.get("/v1/models/tiny").json()["created"] == served.created:
            pass
        assert client.post(PATH, json=CHAT).json()["choices"][0]["message"]["content"] == "second"
        assert not going.done()
        assert list(lines)[-2] == "data: [DONE]"
        assert going.result() == 0
    assert not triton.left.is_set()


def test_none_of_many_requests_is_dropped(served: Served, triton: StandIn, second: StandIn, tmp_path: Path) -> None:
    triton.say("fir", "st")
    triton.gap_s = 0.05
    served = replace(served, limits=replace(served.limits, requests_in_flight=100))
    to = replace(served, triton_url=second.url)
    with going_over(served, to, tmp_path / "log", limit_s=20) as (client, go_over), ThreadPoolExecutor(9) as pool:
        answers = [pool.submit(client.post, PATH, json=CHAT) for _ in range(60)]
        answers[4].result()
        assert go_over() == 0
        texts = [answer.result().json()["choices"][0]["message"]["content"] for answer in answers]
    assert set(texts) == {"first", "second"}


def test_what_does_not_end_in_time_is_counted(served: Served, triton: StandIn, second: StandIn, tmp_path: Path) -> None:
    triton.say(*"first" * 20)
    triton.gap_s = 0.1
    to = replace(served, triton_url=second.url)
    with going_over(served, to, tmp_path / "log", limit_s=0.3) as (client, go_over), ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.post, PATH, json=CHAT)
        while not triton.bodies:
            threading.Event().wait(0.05)
        assert go_over() == 1
        assert slow.result().status_code == 502
