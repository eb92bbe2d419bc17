"""The front, really listening, before a stand-in for Triton; a tokenizer of one token a byte."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from calibration.tiny import chat_tokenizer
from stand_in_triton import StandIn, stand_in_triton
from trtpipe.front import app, server
from trtpipe.front.settings import Limits, Served

LIMITS = Limits(
    context_tokens=200, answer_tokens=100, body_bytes=4096, requests_in_flight=3, request_s=10.0, drain_s=5.0
)


@pytest.fixture
def triton() -> Iterator[StandIn]:
    with stand_in_triton() as triton:
        yield triton


@pytest.fixture
def served(triton: StandIn, tmp_path: Path) -> Served:
    return Served("tiny", 1_700_000_000, triton.url, chat_tokenizer(tmp_path / "model"), LIMITS, api_key=None)


Start = Callable[..., httpx.Client]


@pytest.fixture
def start(served: Served, tmp_path: Path) -> Iterator[Start]:
    """Start a front with changes to what is served; returns a client of it."""
    stop = threading.Event()
    threads, clients = [], []

    def begin(**changes: Any) -> httpx.Client:
        taken, ready = server.bind("127.0.0.1", 0), threading.Event()
        thread = threading.Thread(
            target=server.run,
            args=(app.build(replace(served, **changes)), taken),
            kwargs={
                "drain_s": 1.0,
                "log": tmp_path / "front.log",
                "on_ready": ready.set,
                "has_ended": stop.is_set,
            },
        )
        client = httpx.Client(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}", trust_env=False, timeout=30)
        thread.start()
        assert ready.wait(30)
        threads.append(thread)
        clients.append(client)
        return client

    yield begin
    stop.set()
    for client in clients:
        client.close()
    for thread in threads:
        thread.join()


@pytest.fixture
def front(start: Start) -> httpx.Client:
    return start()
