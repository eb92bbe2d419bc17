"""Log probabilities of the answer's tokens, from the real engine by every way, the front among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import openai
import pytest

from served_front import listening
from served_metrics import Metrics
from trtpipe.chain import fronted
from trtpipe.config.load import workspace as read_workspace
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

PROMPT = "Count: 1 2 3 4 5 6 7"
TOKENS = 16
ROUTES = list(product(exchange.MODELS, ("http", "grpc")))
ASKED: Any = {"model": "sample", "max_tokens": TOKENS, "temperature": 0}


@pytest.fixture(scope="module")
def asking(workspace: Path, running: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """OpenAI's own client of a front before the session's Triton."""
    space = read_workspace(workspace / "trtpipe.yaml")
    served = fronted.served(space, require_current(Store(workspace)), running.addresses.http_url, None)
    log = tmp_path_factory.mktemp("front") / "front.log"
    with (
        listening(served, log) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=120) as asking,
    ):
        yield asking


def url(running: Server, scheme: str) -> str:
    addresses = running.addresses
    return addresses.http_url if scheme == "http" else addresses.grpc_url


def pieces(running: Server, model: exchange.Model, scheme: str, **options: Any) -> list[exchange.Piece]:
    with (
        client.Client(url(running, scheme), model=model) as asking,
        asking.pieces(PROMPT, max_tokens=TOKENS, return_log_probs=True, **options) as found,
    ):
        return list(found)


def test_log_probabilities_are_equal_by_every_way(settled: Metrics, running: Server) -> None:
    pieces(running, "ensemble", "http")  # so that all find the same part of the prompt in the cache
    told = {}
    for model, scheme in ROUTES:
        found = pieces(running, model, scheme)
        log_probs = [value for piece in found for value in piece.log_probs or ()]
        assert len(log_probs) == sum(piece.new_tokens or 0 for piece in found) <= TOKENS
        assert sum(len(piece.log_prob_ids or ()) for piece in found) == len(log_probs)
        told[model, scheme] = log_probs

    first, *others = told.values()
    assert all(value <= 0 for value in first)
    assert math.exp(max(first)) > 0.5, "a small model is sure of some token of a count"
    for other in others:
        assert other == pytest.approx(first, abs=1e-3)


def test_a_greedy_token_is_likelier_than_one_sampled_hot(settled: Metrics, running: Server) -> None:
    def mean(**options: Any) -> float:
        found = [value for piece in pieces(running, "ensemble", "http", **options) for value in piece.log_probs or ()]
        return sum(found) / len(found)

    assert mean() > mean(temperature=2.0, top_p=1.0, seed=1) + 1


def test_nobody_gets_log_probabilities_unasked(running: Server) -> None:
    with client.Client(url(running, "http")) as asking, asking.pieces(PROMPT, max_tokens=4) as found:
        assert all(piece.log_probs is None for piece in found)


@pytest.mark.parametrize("stream", [False, True])
def test_openai_s_client_reads_those_of_a_chat(
    settled: Metrics, running: Server, asking: openai.OpenAI, stream: bool
) -> None:
    pieces(running, "ensemble", "http")  # so that both find the same part of the prompt in the cache
    expected = [value for piece in pieces(running, "ensemble", "http") for value in piece.log_probs or ()]
    messages: Any = [{"role": "user", "content": PROMPT}]

    answer: Any = asking.chat.completions.create(messages=messages, logprobs=True, stream=stream, **ASKED)

    choices = [chunk.choices[0] for chunk in answer] if stream else answer.choices
    tokens = [token for choice in choices if choice.logprobs for token in choice.logprobs.content]
    texts = [(choice.delta if stream else choice.message).content or "" for choice in choices]
    assert [token.logprob for token in tokens] == pytest.approx(expected, abs=1e-3)
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == "".join(texts)


@pytest.mark.parametrize("stream", [False, True])
def test_openai_s_client_reads_those_of_a_completion(settled: Metrics, asking: openai.OpenAI, stream: bool) -> None:
    answer: Any = asking.completions.create(prompt=PROMPT, logprobs=0, stream=stream, **ASKED)

    choices = [chunk.choices[0] for chunk in answer] if stream else answer.choices
    told = [choice.logprobs for choice in choices if choice.logprobs]
    assert "".join(token for each in told for token in each.tokens) == "".join(choice.text for choice in choices)
    assert all(value <= 0 for each in told for value in each.token_logprobs)


def test_what_else_could_have_come_is_refused(asking: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": PROMPT}]
    with pytest.raises(openai.BadRequestError, match="the engine tells the chosen tokens only"):
        asking.chat.completions.create(messages=messages, logprobs=True, top_logprobs=2, **ASKED)
