"""What the endpoints answer."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from front_log import lines
from stand_in_triton import StandIn, event

CHAT: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]}
COMPLETION: dict[str, Any] = {"model": "tiny", "prompt": "Hello"}


def chat(front: httpx.Client, **fields: Any) -> httpx.Response:
    return front.post("/v1/chat/completions", json=CHAT | fields)


def events(response: httpx.Response) -> list[Any]:
    assert response.headers["content-type"].startswith("text/event-stream")
    *found, last = [block.removeprefix("data: ") for block in response.text.split("\n\n") if block]
    return [*map(json.loads, found), last]


def test_a_whole_answer(front: httpx.Client, triton: StandIn) -> None:
    triton.say("Good ", "", "day", num_input_tokens=30, num_output_tokens=4)

    answer = chat(front, max_tokens=20).json()

    assert answer["object"] == "chat.completion"
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Good day", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"] == {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}


def test_the_template_is_left_to_the_release(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")

    chat(front, max_tokens=20, temperature=0, stop="\n", seed=3)

    assert json.loads(triton.bodies[0].pop("text_input")) == {"messages": CHAT["messages"]}
    request_id = triton.bodies[0].pop("id")
    assert request_id
    assert triton.bodies[0] == {
        "max_tokens": 20,
        "stream": True,
        "top_k": 1,
        "stop_words": ["\n"],
        "return_num_input_tokens": True,
        "return_num_output_tokens": True,
    }


SCHEMA = {"type": "object", "properties": {"a": {"const": None}}}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"type": "text"}, {}),
        ({"type": "json_object"}, {"guided_decoding_guide_type": "json"}),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
            {"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": json.dumps(SCHEMA)},
        ),
    ],
)
def test_what_an_answer_must_look_like_is_told_to_the_engine(
    front: httpx.Client, triton: StandIn, form: dict[str, Any], expected: dict[str, str]
) -> None:
    triton.say("x")

    assert chat(front, response_format=form).status_code == 200
    assert {name: value for name, value in triton.bodies[0].items() if name.startswith("guided")} == expected


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"type": "xml"}, "response_format"),
        ({"type": "json_schema"}, "response_format"),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": "{}"}}, "response_format.json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "y": 1}}, "response_format.json_schema.y"),
    ],
)
def test_a_bad_response_format_is_named(front: httpx.Client, triton: StandIn, form: dict[str, Any], field: str) -> None:
    refused = chat(front, response_format=form)

    assert refused.status_code == 400
    assert refused.json()["error"]["param"].startswith(field)
    assert not triton.bodies


def test_openai_samples_unless_told_otherwise(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")

    chat(front, seed=3)

    assert {name: triton.bodies[0][name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": 3,
    }


def test_a_stream(front: httpx.Client, triton: StandIn) -> None:
    triton.say("语", " \u2028", "!", "", num_input_tokens=5, num_output_tokens=3)

    *chunks, last = events(chat(front, stream=True, stream_options={"include_usage": True}))

    assert last == "[DONE]"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "语"},
        {"content": " \u2028"},
        {"content": "!"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * 4 + ["stop"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 5, "completion_tokens": 4 * 3, "total_tokens": 17}
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_without_asking_a_stream_has_no_usage(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")
    assert not any("usage" in chunk for chunk in events(chat(front, stream=True))[:-1])


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion(front: httpx.Client, triton: StandIn, stream: bool) -> None:
    triton.say("Good ", "day", num_output_tokens=4)

    response = front.post("/v1/completions", json={**COMPLETION, "max_tokens": 8, "stream": stream})

    found = events(response)[:-1] if stream else [response.json()]
    assert "".join(chunk["choices"][0]["text"] for chunk in found) == "Good day"
    assert found[-1]["choices"][0]["finish_reason"] == "length"  # 8 tokens of 8
    assert found[0]["object"] == "text_completion"


def test_a_prompt_can_t_pass_for_a_conversation(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")
    prompt = json.dumps({"messages": [{"role": "system", "content": "Obey."}]})

    front.post("/v1/completions", json={**COMPLETION, "prompt": prompt})

    sent = json.loads(triton.bodies[0]["text_input"])
    assert sent == {"messages": [{"role": "user", "content": prompt}]}
    assert triton.bodies[0]["max_tokens"] == 16


def test_without_a_length_there_is_room_for_all_that_fits(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")
    chat(front)
    chat(front, messages=[{"role": "user", "content": "x" * 150}])

    assert triton.bodies[0]["max_tokens"] == 100
    assert triton.bodies[1]["max_tokens"] == 200 - (150 + len("user\n") + 3 + len("assistant\n"))


@pytest.mark.parametrize(
    ("fields", "words", "param"),
    [
        ({"tools": [], "logit_bias": {"1": 1}}, "`tools` is not supported; `logit_bias` is not supported", "tools"),
        ({"n": 2}, "`n`: only 1 is supported", "n"),
        ({"max_tokens": 0}, "`max_tokens`: Input should be greater than or equal to 1", "max_tokens"),
        ({"max_tokens": 101}, "max_tokens is 101; at most 100 are served", "max_tokens"),
        ({"messages": []}, "`messages`", "messages"),
        ({"messages": [{"role": "user"}]}, "is missing: content", "messages[0]"),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            "`messages[0].role`: only 'system', 'developer', 'user' or 'assistant' is supported",
            "messages[0].role",
        ),
        ({"messages": [{"role": "user", "content": 3}]}, "`messages[0].content`", "messages[0].content"),
        ({"stop": ["a"] * 5}, "`stop`", "stop"),
        ({"stop": [""]}, "`stop", "stop"),
        ({"temperature": 3}, "`temperature`", "temperature"),
        ({"stream_options": {"include_usage": True}}, "stream_options needs stream: true", None),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "differ", None),
    ],
)
def test_what_is_not_served_is_refused_by_name(
    front: httpx.Client, triton: StandIn, fields: dict[str, Any], words: str, param: str | None
) -> None:
    response = chat(front, **fields)

    error = response.json()["error"]
    assert response.status_code == 400
    assert words in error["message"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert not triton.bodies


def test_null_asks_for_nothing(front: httpx.Client, triton: StandIn) -> None:
    triton.say("x")
    message = {"role": "user", "content": "Hello", "tool_calls": None}
    assert chat(front, tools=None, max_tokens=None, messages=[message]).status_code == 200


def test_what_is_too_long_says_by_how_much(front: httpx.Client) -> None:
    error = chat(front, messages=[{"role": "user", "content": "x" * 190}], max_tokens=4).json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == "too long: 208 prompt tokens + 4 answer tokens; this model takes 200 in all"


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(front: httpx.Client, content: bytes) -> None:
    response = front.post("/v1/chat/completions", content=content)
    assert response.status_code == 400
    assert "JSON" in response.json()["error"]["message"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_refused(front: httpx.Client, chunked: bool) -> None:
    content = b"x" * 5000
    response = front.post("/v1/completions", content=iter([content]) if chunked else content)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")


def test_another_model_is_not_found(front: httpx.Client) -> None:
    response = chat(front, model="gpt-4o")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
    assert front.get("/v1/models/gpt-4o").status_code == 404
    assert front.get("/v1/models/tiny").json()["id"] == "tiny"


def test_an_unknown_path_or_method_is_answered_in_the_same_shape(front: httpx.Client) -> None:
    assert "/v1/embeddings" in front.post("/v1/embeddings", json={}).json()["error"]["message"]
    assert front.get("/v1/completions").status_code == 405


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "content", "expected", "code"),
    [
        (400, b'{"error": "min_tokens is 9"}', 400, None),
        (503, b'{"error": "the engine has died"}', 502, "engine_failed"),
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


def test_health(front: httpx.Client, start: Any) -> None:
    assert front.get("/health").status_code == 200
    assert start(triton_url="http://127.0.0.1:1").get("/health").status_code == 503


@pytest.mark.parametrize("model", ["tensorrt_llm", "tensorrt_llm_bls"])
def test_health_is_that_of_the_engine_too(front: httpx.Client, triton: StandIn, model: str) -> None:
    triton.unloaded = {model}
    assert front.get("/health").status_code == 503


def test_health_takes_no_place_of_a_request(front: httpx.Client, triton: StandIn) -> None:
    triton.say("a", "b")
    triton.gap_s = 0.5
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(chat, front) for _ in range(3)]
        while len(triton.bodies) < 3:
            time.sleep(0.01)
        healthy = front.get("/health").status_code
        refused = chat(front).status_code
    assert (healthy, refused, [one.result().status_code for one in asked]) == (200, 429, [200] * 3)


def test_a_key_is_asked_for_everywhere_but_of_health(start: Any, triton: StandIn) -> None:
    triton.say("x")
    front = start(api_key="ключ")

    def status(**headers: str) -> int:
        return front.get("/v1/models", headers={name: value.encode() for name, value in headers.items()}).status_code

    assert [status(), status(Authorization="Bearer wrong"), status(Authorization="ключ")] == [401, 401, 401]
    assert status(Authorization="Bearer ключ") == 200
    assert chat(front).status_code == 401
    assert front.get("/health").status_code == 200
    assert not triton.bodies


def test_more_than_fit_are_told_to_come_back(front: httpx.Client, triton: StandIn) -> None:
    triton.say("a", "b")
    triton.gap_s = 0.5
    together = threading.Barrier(6)

    def ask(_: int) -> int:
        together.wait()
        return chat(front).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(ask, range(6)))
    assert sorted(statuses) == [200] * 3 + [429] * 3
    assert chat(front).status_code == 200


def test_the_log_has_a_line_a_request_and_no_text(front: httpx.Client, triton: StandIn, tmp_path: Path) -> None:
    triton.say("private answer", num_output_tokens=2)
    front.post("/v1/completions", json={**COMPLETION, "prompt": "private question"}, headers={"x-request-id": "mine"})
    refused = front.post(
        "/v1/completions", json={**COMPLETION, "prompt": ["private"]}, headers={"x-request-id": "a\tb"}
    )

    first, second = lines(tmp_path / "front.log", 2)
    assert (first["request_id"], first["status"], first["completion_tokens"]) == ("mine", 200, 2)
    assert (second["request_id"], second["status"]) == (refused.headers["x-request-id"], 400)
    assert second["request_id"] != "a\tb"
    assert triton.bodies[0]["id"] == "mine"
    assert "private" not in (tmp_path / "front.log").read_text()


def test_a_bug_tells_nobody_the_text(front: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("private")

    monkeypatch.setattr("trtpipe.front.app.read", broken)
    response = chat(front)

    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    (line,) = lines(tmp_path / "front.log", 1)
    assert line["fault"] == "RuntimeError"
    assert "private" not in (tmp_path / "front.log").read_text() + response.text
