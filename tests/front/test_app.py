"""What the endpoints answer."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from front_requests import CHAT, COMPLETION, chat, events
from stand_in_triton import StandIn


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


def test_what_is_too_long_says_by_how_much(front: httpx.Client) -> None:
    error = chat(front, messages=[{"role": "user", "content": "x" * 190}], max_tokens=4).json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == "too long: 208 prompt tokens + 4 answer tokens; this model takes 200 in all"


def test_another_model_is_not_found(front: httpx.Client) -> None:
    response = chat(front, model="gpt-4o")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
    assert front.get("/v1/models/gpt-4o").status_code == 404
    assert front.get("/v1/models/tiny").json()["id"] == "tiny"


def test_an_unknown_path_or_method_is_answered_in_the_same_shape(front: httpx.Client) -> None:
    assert "/v1/embeddings" in front.post("/v1/embeddings", json={}).json()["error"]["message"]
    assert front.get("/v1/completions").status_code == 405


def test_health(front: httpx.Client, start: Any) -> None:
    assert front.get("/health").status_code == 200
    assert start(triton_url="http://127.0.0.1:1").get("/health").status_code == 503


@pytest.mark.parametrize("model", ["tensorrt_llm", "tensorrt_llm_bls"])
def test_health_is_that_of_the_engine_too(front: httpx.Client, triton: StandIn, model: str) -> None:
    triton.unloaded = {model}
    assert front.get("/health").status_code == 503
