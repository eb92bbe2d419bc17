"""Bodies that are no text, or nested without end, are refused before a model sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trtpipe.front.bodies import ChatBody
from trtpipe.front.errors import ApiError
from trtpipe.front.read import read


def refusal(content: bytes) -> ApiError:
    with pytest.raises(ApiError) as found:
        read(ChatBody, content)
    found.value.response()  # can be written
    return found.value


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": "cut \ud83d"}]},
        {"model": "\ude00"},
        {"\ud83d": 1},
        {"stop": ["\ud83d"]},
    ],
)
def test_half_a_character_is_refused(fields: dict[str, Any]) -> None:
    error = refusal(body(**fields))
    assert error.status == 400
    assert "surrogate" in str(error)


def test_whole_characters_are_not() -> None:
    content = body(messages=[{"role": "user", "content": "\U0001f600"}])
    assert b"\\ud83d\\ude00" in content
    assert read(ChatBody, content).messages[0].content == "\U0001f600"


@pytest.mark.parametrize("depth", [400, 20_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_deep_body_is_refused(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    assert refusal(opening * depth + b"1" + closing * depth).status == 400


@pytest.mark.parametrize("field", ["top_k", "min_tokens"])
def test_a_number_that_the_contract_has_no_room_for_is_refused(field: str) -> None:
    assert field in str(refusal(body(**{field: 2**31})))
    assert getattr(read(ChatBody, body(**{field: 2**31 - 1})), field) == 2**31 - 1
