"""The front, really listening, before a stand-in for Triton; a tokenizer of one token a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from calibration.tiny import chat_tokenizer
from served_front import listening
from stand_in_triton import StandIn, stand_in_triton
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
    with ExitStack() as open_until_the_end:

        def begin(**changes: Any) -> httpx.Client:
            front = listening(replace(served, **changes), tmp_path / "front.log", drain_s=1.0)
            client = httpx.Client(base_url=open_until_the_end.enter_context(front), trust_env=False, timeout=30)
            return open_until_the_end.enter_context(client)

        yield begin


@pytest.fixture
def front(start: Start) -> httpx.Client:
    return start()
