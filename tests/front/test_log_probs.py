"""The log probabilities of the chosen tokens, in OpenAI's two forms."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from front_requests import COMPLETION, chat, events
from stand_in_triton import StandIn, event
from trtpipe.front.settings import Served

TEXT = "a语"  # four tokens: the character is three, whose text comes with the last of them
BYTES = [[97], *([byte] for byte in "语".encode())]
LOG_PROBS = [-0.5, -1.5, -0.25, 0]


@pytest.fixture
def ids(triton: StandIn, served: Served) -> list[int]:
    """Let Triton answer ``TEXT`` as the engine does; returns its ids."""
    ids = served.tokenizer.encode(TEXT)
    assert len(ids) == 4
    texts = ["a", "", "", "语"]
    triton.pieces = [
        event(text, output_log_probs=log_prob, log_prob_ids=token)
        for text, log_prob, token in zip(texts, LOG_PROBS, ids, strict=True)
    ]
    return ids


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_tells_each_token_with_its_bytes(
    front: httpx.Client, triton: StandIn, ids: list[int], stream: bool
) -> None:
    response = chat(front, stream=stream, logprobs=True)

    choices = [chunk["choices"][0] for chunk in (events(response)[:-1] if stream else [response.json()])]
    tokens = [token for choice in choices for token in (choice["logprobs"] or {"content": []})["content"]]
    assert [token["bytes"] for token in tokens] == BYTES
    assert [token["logprob"] for token in tokens] == LOG_PROBS
    assert [token["token"] for token in tokens] == ["a", "\ufffd", "\ufffd", "\ufffd"]
    assert all(token["top_logprobs"] == [] for token in tokens)
    assert "".join((choice["delta"] if stream else choice["message"]).get("content", "") for choice in choices) == TEXT
    assert triton.bodies[0]["return_log_probs"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_tells_them_as_lists(front: httpx.Client, ids: list[int], stream: bool) -> None:
    response = front.post("/v1/completions", json={**COMPLETION, "logprobs": 0, "stream": stream})

    found = [chunk["choices"][0]["logprobs"] for chunk in (events(response)[:-1] if stream else [response.json()])]
    told = [each for each in found if each]
    assert [value for each in told for value in each["token_logprobs"]] == LOG_PROBS
    assert [value for each in told for value in each["tokens"]] == ["a", "\ufffd", "\ufffd", "\ufffd"]
    assert all(each["top_logprobs"] is each["text_offset"] is None for each in told)


def test_a_special_token_has_a_name_and_no_bytes(front: httpx.Client, triton: StandIn, served: Served) -> None:
    triton.pieces = [event("", output_log_probs=-0.5, log_prob_ids=served.tokenizer.end_id)]

    ((token,),) = [chat(front, logprobs=True).json()["choices"][0]["logprobs"]["content"]]

    assert token["token"]
    assert token["bytes"] is None


def test_nobody_is_told_unasked(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")
    assert chat(front, logprobs=False, top_logprobs=0).json()["choices"][0]["logprobs"] is None
    assert "return_log_probs" not in triton.bodies[0]


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/chat/completions", {"messages": [], "logprobs": True, "top_logprobs": 3}, "top_logprobs"),
        ("/v1/completions", {"prompt": "x", "logprobs": 3}, "logprobs"),
    ],
)
def test_what_else_could_have_come_is_refused_with_the_reason(
    front: httpx.Client, triton: StandIn, path: str, fields: dict[str, Any], param: str
) -> None:
    response = front.post(path, json={"model": "tiny", **fields})

    assert response.status_code == 400
    assert f"`{param}` is 3: the engine tells the chosen tokens only" in response.json()["error"]["message"]
    assert not triton.bodies


@pytest.mark.parametrize("facts", [{"log_prob_ids": [1, 2]}, {}])
def test_log_probabilities_of_unknown_tokens_are_an_error(
    front: httpx.Client, triton: StandIn, facts: dict[str, Any]
) -> None:
    """A release that an earlier trtpipe packaged tells no ids."""
    triton.pieces = [event("x", output_log_probs=-0.5, **facts)]

    response = chat(front, logprobs=True)

    assert (response.status_code, response.json()["error"]["code"]) == (502, "engine_failed")
    assert "which tokens" in response.json()["error"]["message"]
