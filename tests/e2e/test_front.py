"""The OpenAI-compatible front before the real Triton, asked with OpenAI's own client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from front_log import lines
from served_front import listening
from served_metrics import Metrics
from trtpipe.chain import fronted
from trtpipe.config.load import workspace as read_workspace
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

KEY = "a-key-for-tests"
QUESTION = "What is the capital of France? Answer in one short sentence."
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
ENDLESS_TOKENS = 1500
LOG_NAME = "front.log"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("front") / LOG_NAME


@pytest.fixture(scope="module")
def url(workspace: Path, running: Server, log: Path) -> Iterator[str]:
    """The front's address, before the session's Triton."""
    space = read_workspace(workspace / "trtpipe.yaml")
    served = fronted.served(space, require_current(Store(workspace)), running.addresses.http_url, KEY)
    with listening(served, log) as address:
        yield f"{address}/v1"


@pytest.fixture(scope="module")
def asking(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=120) as asking:
        yield asking


@pytest.fixture
def greedy(settled: Metrics, server: str) -> str:
    """The ensemble's text, once the prompt is in the cache."""
    client.ask(server, QUESTION, max_tokens=1)
    return client.ask(server, QUESTION, max_tokens=24).text


def test_the_model_is_listed(asking: openai.OpenAI) -> None:
    assert [model.id for model in asking.models.list()] == ["sample"]
    assert asking.models.retrieve("sample").owned_by == "trtpipe"


def test_a_chat_says_what_the_ensemble_says(asking: openai.OpenAI, greedy: str) -> None:
    answer = asking.chat.completions.create(model="sample", messages=MESSAGES, max_tokens=24, temperature=0)

    assert answer.choices[0].message.content == greedy
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 20
    assert 0 < answer.usage.completion_tokens <= 24


def test_a_stream_adds_up_to_the_same(asking: openai.OpenAI, greedy: str) -> None:
    chunks = list(
        asking.chat.completions.create(
            model="sample",
            messages=MESSAGES,
            max_completion_tokens=24,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == greedy
    assert sum(map(bool, texts)) > 2
    assert chunks[-2].choices[0].finish_reason in ("stop", "length")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_says_what_the_ensemble_says(asking: openai.OpenAI, greedy: str, stream: bool) -> None:
    answer: Any = asking.completions.create(
        model="sample", prompt=QUESTION, max_tokens=24, temperature=0, stream=stream
    )

    texts = [chunk.choices[0].text for chunk in answer] if stream else [answer.choices[0].text]
    assert "".join(texts) == greedy


def test_a_cut_answer_says_so_and_a_finished_one_too(asking: openai.OpenAI) -> None:
    def finish(max_tokens: int) -> str | None:
        answer = asking.chat.completions.create(model="sample", messages=MESSAGES, max_tokens=max_tokens, temperature=0)
        return answer.choices[0].finish_reason

    assert (finish(3), finish(200)) == ("length", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_keeps_a_schema(asking: openai.OpenAI, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    answer: Any = asking.chat.completions.create(
        model="sample", messages=MESSAGES, max_tokens=40, stream=stream, response_format=form
    )

    texts = (
        [chunk.choices[0].delta.content or "" for chunk in answer] if stream else [answer.choices[0].message.content]
    )
    assert json.loads("".join(texts))["city"] in ("Paris", "Rome")


def test_a_stop_string_ends_the_answer(asking: openai.OpenAI, greedy: str) -> None:
    answer = asking.chat.completions.create(
        model="sample", messages=MESSAGES, max_tokens=24, temperature=0, stop=["France"]
    )

    assert answer.choices[0].message.content == greedy.partition("France")[0]
    assert answer.choices[0].finish_reason == "stop"


def test_a_seed_repeats_a_sampled_answer(asking: openai.OpenAI) -> None:
    def sample(seed: int) -> str | None:
        answer = asking.chat.completions.create(
            model="sample", messages=[{"role": "user", "content": "Tell me a story."}], max_tokens=16, seed=seed
        )
        return answer.choices[0].message.content

    sample(7)  # so that all find the same part of the prompt in the cache
    assert sample(7) == sample(7)
    assert len({sample(seed) for seed in (1, 2, 3)}) == 3


def test_a_wrong_key_is_refused(url: str) -> None:
    with (
        openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError, match="API key"),
    ):
        stranger.models.list()


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_too_long_is_refused_in_words(asking: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match=r"prompt tokens \+ 8 answer tokens; .* 2048") as caught:
        asking.chat.completions.create(
            model="sample", messages=[{"role": "user", "content": "word " * 3000}], max_tokens=8, stream=stream
        )
    assert caught.value.code == "context_length_exceeded"


def test_the_engines_own_refusals_pass_through(asking: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="min_tokens is 9; it must be 0 to 4"):
        asking.chat.completions.create(
            model="sample", messages=MESSAGES, max_tokens=4, stream=True, extra_body={"min_tokens": 9}
        )


@contextmanager
def freed_early(metrics: Metrics) -> Iterator[None]:
    """Check that what is left within the block leaves the engine at once, long before its last token."""
    cancelled = metrics("trtpipe_request_outcomes", "cancelled")
    yield
    metrics.until_free(limit_s=8)
    metrics.until(lambda: metrics("trtpipe_request_outcomes", "cancelled") == cancelled + 1, limit_s=1)


def test_leaving_a_stream_frees_the_engine(settled: Metrics, asking: openai.OpenAI) -> None:
    with freed_early(settled):
        answer = asking.chat.completions.create(
            model="sample",
            messages=MESSAGES,
            max_tokens=ENDLESS_TOKENS,
            stream=True,
            extra_body={"min_tokens": ENDLESS_TOKENS},
        )
        next(iter(answer))
        assert settled("nv_trt_llm_request_metrics", "active") == 1
        answer.close()


def test_leaving_a_unary_request_frees_the_engine(settled: Metrics, url: str) -> None:
    body = {"model": "sample", "messages": MESSAGES, "max_tokens": ENDLESS_TOKENS, "min_tokens": ENDLESS_TOKENS}
    with freed_early(settled), pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{url}/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=httpx.Timeout(3),
            trust_env=False,
        )


def test_many_at_once_all_get_their_answer(settled: Metrics, asking: openai.OpenAI, greedy: str) -> None:
    def ask(number: int) -> int:
        answer = asking.chat.completions.create(
            model="sample", messages=[{"role": "user", "content": f"Count to {number}."}], max_tokens=4
        )
        return len(answer.choices)

    with ThreadPoolExecutor(24) as pool:
        assert sum(pool.map(ask, range(48))) == 48


def test_the_log_has_ids_and_counts_but_no_text(asking: openai.OpenAI, log: Path) -> None:
    word = f"secret{time.time_ns()}"
    answer = asking.chat.completions.with_raw_response.create(
        model="sample",
        messages=[{"role": "user", "content": f"Say {word}"}],
        max_tokens=2,
        extra_headers={"X-Request-Id": "mine-1"},
    )

    assert answer.headers["x-request-id"] == "mine-1"
    (line,) = lines(log, 1, "mine-1")
    assert (line["status"], line["path"]) == (200, "/v1/chat/completions")
    assert line["prompt_tokens"] > line["completion_tokens"] > 0
    assert word not in log.read_text()
