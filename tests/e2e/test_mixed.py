"""All routes at once, a smaller version of ``soak/mixed.py``: nothing is lost, and closed sockets do no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mixed_routes import PROMPTS, ROUTES, Got, asker, send_by_hand
from served_front import listening
from served_metrics import Metrics
from trtpipe.chain import fronted
from trtpipe.config.load import workspace as read_workspace
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

KEY = "a-key-for-tests"
REQUESTS = 60
LIMIT_S = 300.0


@pytest.fixture
def front_url(workspace: Path, running: Server, tmp_path: Path) -> Iterator[str]:
    space = read_workspace(workspace / "trtpipe.yaml")
    served = fronted.served(space, require_current(Store(workspace)), running.addresses.http_url, KEY)
    with listening(served, tmp_path / "front.log") as url:
        yield url


def test_sixty_at_once_on_all_routes_lose_nothing(settled: Metrics, running: Server, front_url: str) -> None:
    """Each answer has exactly the tokens that were asked for, by the engine's own count."""
    asked = [
        (ROUTES[number % len(ROUTES)], PROMPTS[number % len(PROMPTS)], 4 + number % 9) for number in range(REQUESTS)
    ]

    async def ask_all() -> list[Got]:
        async with asker(running, front_url, KEY) as asking:
            return await asyncio.gather(
                *(asking.ask(route, prompt, n, exactly=True, time_limit_s=LIMIT_S) for route, prompt, n in asked)
            )

    found = asyncio.run(ask_all())

    assert [got.tokens for got in found] == [tokens for _, _, tokens in asked]
    assert all(got.text for got in found)


def test_the_front_says_the_same_with_the_engines_counts(settled: Metrics, running: Server, front_url: str) -> None:
    async def ask_each() -> dict[str, Got]:
        async with asker(running, front_url, KEY) as asking:
            found = {}
            for route in (ROUTES[0], *ROUTES):  # the first one fills the cache
                found[str(route)] = await asking.ask(route, PROMPTS[3], 24, exactly=False, time_limit_s=LIMIT_S)
            return found

    found = asyncio.run(ask_each())

    assert len({(got.text, got.tokens) for got in found.values()}) == 1, found


def test_twenty_sockets_closed_within_an_answer_leave_the_server_alive(settled: Metrics, running: Server) -> None:
    """Of a unary request, and within the ensemble, Triton 2.51 does not notice it: those end with their last token."""
    url = running.addresses.http_url
    before = ended_requests(settled)
    ways = [(model, stream) for model in exchange.MODELS for stream in (False, True)] * 5
    for number, (model, stream) in enumerate(ways, 1):
        with send_by_hand(url, model, PROMPTS[0], 24, stream=stream):
            settled.until(lambda sent=number: ended_requests(settled) + in_flight(settled) == before + sent)
    settled.until_free(limit_s=60)

    assert ended_requests(settled) == before + 20
    assert client.ask(url, "Hello", max_tokens=4).text


def in_flight(metrics: Metrics) -> float:
    return metrics("nv_trt_llm_request_metrics", "active")


def ended_requests(metrics: Metrics) -> float:
    return sum(metrics("trtpipe_request_outcomes", outcome) for outcome in ("answered", "cancelled"))


@pytest.mark.parametrize("model", [*exchange.MODELS, "tensorrt_llm"])
def test_infer_refuses_decoupled_models_and_generate_serves_them(settled: Metrics, server: str, model: str) -> None:
    ids = {"input_ids": [1, 504, 338], "input_lengths": 3, "request_output_len": 2}
    body = ids if model == "tensorrt_llm" else {"text_input": "Hello", "max_tokens": 2}
    tensor = {"name": "text_input", "datatype": "BYTES", "shape": [1, 1], "data": ["Hello"]}
    count = {"name": "max_tokens", "datatype": "INT32", "shape": [1, 1], "data": [2]}

    refused = httpx.post(
        f"{server}/v2/models/{model}/infer", json={"inputs": [tensor, count]}, timeout=30, trust_env=False
    )
    served = httpx.post(f"{server}/v2/models/{model}/generate", json=body, timeout=60, trust_env=False)

    assert "decoupled" in refused.text
    assert served.status_code == 200, served.text
