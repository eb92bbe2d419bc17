"""The served release, asked over HTTP: a real Triton, the real engine, the sample model."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from served_metrics import Metrics
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import Store
from trtpipe.errors import ToolFailed
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange

pytestmark = pytest.mark.e2e

QUESTION = "What is the capital of France? Answer in one short sentence."
ENGINE = "/v2/models/tensorrt_llm"


@pytest.fixture(scope="module")
def tokenizer(workspace: Path) -> ChatTokenizer:
    return ChatTokenizer.load(require_current(Store(workspace)).path / "engine")


@contextmanager
def engine_stream(server: str, answer_tokens: int) -> Iterator[Iterator[str]]:
    """Stream from the engine itself; end_id -1 keeps it going to the last token."""
    body = {
        "input_ids": [1, 504, 338],
        "input_lengths": 3,
        "request_output_len": answer_tokens,
        "end_id": -1,
        "streaming": True,
    }
    url = f"{server}{ENGINE}/generate_stream"
    with httpx.stream("POST", url, json=body, timeout=60, trust_env=False) as response:
        yield (line for line in response.iter_lines() if line.startswith("data:"))


def test_the_answer_makes_sense(server: str) -> None:
    """The facts depend on the CPU, which calibration and engine round by: this is a 135M model in 4 bits."""
    assert "France" in client.ask(server, QUESTION, max_tokens=30).text


@pytest.mark.parametrize(
    "prompt",
    [
        QUESTION,
        "请用中文介绍一下北京。",
        "Reply with five emoji: 😂 🎉 👍 🚀 🌍",
        [{"role": "user", "content": "Translate to Korean: hello"}],
    ],
)
def test_a_stream_adds_up_to_the_unary_text(settled: Metrics, server: str, prompt: Any) -> None:
    client.ask(server, prompt, max_tokens=1)  # so that both find the same part of the prompt in the cache
    unary = client.ask(server, prompt, max_tokens=40)
    chunks: list[str] = []
    streamed = client.ask(server, prompt, max_tokens=40, stream=True, on_chunk=chunks.append)

    assert streamed.text == unary.text
    assert unary.chunks == 1
    assert streamed.chunks > 3
    assert not any("\ufffd" in chunk for chunk in chunks) or "\ufffd" in unary.text


def test_a_conversation_reaches_the_engine_token_by_token(tokenizer: ChatTokenizer, server: str) -> None:
    """A conversation as a JSON document gives the same tokens as its ids sent to the engine itself."""
    messages = [
        {"role": "system", "content": "You answer with one word."},
        {"role": "user", "content": "Capital of Italy?"},
    ]
    ids = tokenizer.encode_chat(messages)
    body = {"input_ids": ids, "input_lengths": len(ids), "request_output_len": 12}
    direct = httpx.post(f"{server}{ENGINE}/generate", json=body, timeout=60, trust_env=False).json()

    text = client.ask(server, messages, max_tokens=12).text

    assert tokenizer.decode(direct["output_ids"]) == text


def test_a_stop_word_ends_the_answer_and_is_not_shown(server: str) -> None:
    client.ask(server, QUESTION, max_tokens=1)  # so that all find the same part of the prompt in the cache
    whole = client.ask(server, QUESTION, max_tokens=30).text
    assert "France" in whole
    for stream in (False, True):
        options = {"stop_words": ["France"]}
        stopped = client.ask(server, QUESTION, max_tokens=30, stream=stream, options=options).text
        assert stopped == whole.partition("France")[0]


def test_a_seed_repeats_a_sampled_answer(settled: Metrics, server: str) -> None:
    def sample(seed: int) -> str:
        options = {"temperature": 1.5, "top_p": 1.0, "seed": seed}
        return client.ask(server, "Tell me a story.", max_tokens=24, options=options).text

    sample(7)  # so that all find the same part of the prompt in the cache
    assert sample(7) == sample(7)
    assert len({sample(seed) for seed in (1, 2, 2**64 - 1)}) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_an_over_long_prompt_is_refused_in_words(server: str, stream: bool) -> None:
    with pytest.raises(
        ToolFailed, match=r"400: .*prompt tokens \+ 8 requested answer tokens = \d+; this engine takes \d+"
    ):
        client.ask(server, "word " * 20_000, max_tokens=8, stream=stream)

    assert client.ask(server, QUESTION, max_tokens=1).chunks == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam_width": 4}, "beam_width is 4"),
        ({"top_kk": 4}, "top_kk"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"timeout": 1_000_000}, "timeout has no effect"),
        ({"priority": 2}, "priority has no effect"),
    ],
)
@pytest.mark.parametrize("model", exchange.MODELS)
def test_what_is_not_served_is_refused_by_name(
    server: str, model: exchange.Model, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=f"400: .*{words}"):
        client.ask(server, QUESTION, max_tokens=4, model=model, options=options)


def test_a_text_for_the_engine_is_refused_in_words(server: str) -> None:
    body = {"input_ids": [1], "input_lengths": 1, "request_output_len": 1, "guided_decoding_guide": "json"}
    response = httpx.post(f"{server}{ENGINE}/generate", json=body, timeout=60, trust_env=False)

    assert response.status_code == 400
    assert "guided_decoding_guide" in response.json()["error"]
    assert httpx.get(f"{server}{ENGINE}/ready", trust_env=False).status_code == 200


def test_an_equal_system_prompt_is_found_in_the_cache(settled: Metrics, server: str) -> None:
    system = f"You are the assistant number {time.time_ns()} of a hotel. " + "Be polite and brief. " * 20

    def ask(question: str) -> float:
        before = settled("trtpipe_prefix_cache_tokens", "hit")
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        client.ask(server, messages, max_tokens=4)
        return settled("trtpipe_prefix_cache_tokens", "hit") - before

    first, second = ask("When is breakfast?"), ask("Is there a pool?")

    assert second - first >= 64


def test_two_requests_are_in_flight_at_once(settled: Metrics, server: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(client.ask, server, f"Tell a long story about {animal}.", max_tokens=200)
            for animal in ("cats", "dogs")
        ]
        settled.until(lambda: settled("nv_trt_llm_request_metrics", "scheduled") == 2)
        assert settled("nv_trt_llm_kv_cache_block_metrics", "used") > 0
        assert all(future.result().text for future in asked)


def test_closing_a_stream_of_the_engine_cancels_the_request(settled: Metrics, server: str) -> None:
    cancelled = settled("trtpipe_request_outcomes", "cancelled")

    with engine_stream(server, answer_tokens=1000) as events:
        first = json.loads(next(events).removeprefix("data:"))
        assert first["sequence_length"] >= 1
        assert settled("nv_trt_llm_request_metrics", "active") == 1

    settled.until(lambda: settled("trtpipe_request_outcomes", "cancelled") == cancelled + 1, limit_s=5)
    settled.until_free(limit_s=5)


def test_the_engine_streams_new_tokens_only(server: str) -> None:
    with engine_stream(server, answer_tokens=20) as events:
        lengths = [json.loads(event.removeprefix("data:"))["sequence_length"] for event in events]

    assert sum(lengths) == 20
    assert len(lengths) > 3
