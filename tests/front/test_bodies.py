"""What a body may not hold is refused by its name, before Triton is asked."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from front_requests import chat
from stand_in_triton import StandIn


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
