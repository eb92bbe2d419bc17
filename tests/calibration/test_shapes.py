"""What each shape of a log means, and rows that fit none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from calibration.read_logs import read
from calibration.tiny import write_log
from trtpipe.calibration.messages import Fault
from trtpipe.calibration.row import Message
from trtpipe.calibration.shapes import SHAPES, detect

if TYPE_CHECKING:
    from pathlib import Path

USER = {"role": "user", "content": "q"}
TOOLS = [{"type": "function", "function": {"name": "search"}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def test_chat_with_tools_calls_and_content_parts() -> None:
    found = SHAPES["chat"].read(
        {
            "tools": TOOLS,
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "found"},
                {"role": "assistant", "content": "the answer"},
            ],
        }
    )
    assert [(message.role, message.content) for message in found.messages] == [
        ("system", "be brief"),
        ("user", "a\nb"),
        ("assistant", ""),
        ("tool", "found"),
    ]
    assert found.messages[2].document["tool_calls"] == [CALL]
    assert found.messages[3].document["tool_call_id"] == "c1"
    assert (found.response, json.loads(found.tools)) == ("the answer", TOOLS)


def test_sharegpt() -> None:
    turns = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"}]
    found = SHAPES["sharegpt"].read({"system": "s", "conversations": [*turns, {"from": "gpt", "value": "d"}]})
    assert found.messages == (
        Message("system", "s"),
        Message("user", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
    )
    assert found.response == "d"


@pytest.mark.parametrize(
    "document",
    [
        {"text_input": "q", "text_output": "a", "max_tokens": 5},
        {"text_input": json.dumps({"messages": [USER]}), "text_output": "a"},
        {
            "inputs": [
                {"name": "max_tokens", "datatype": "INT32", "shape": [1, 1], "data": [5]},
                {"name": "text_input", "datatype": "BYTES", "shape": [1, 1], "data": [["q"]]},
            ],
            "outputs": [{"name": "text_output", "datatype": "BYTES", "shape": [1], "data": ["a"]}],
        },
    ],
)
def test_kserve_bodies(document: dict[str, Any]) -> None:
    found = SHAPES["kserve"].read(document)
    assert (found.messages, found.response) == ((Message("user", "q"),), "a")


@pytest.mark.parametrize("as_text", [True, False])
def test_openai_access_log_bodies(*, as_text: bool) -> None:
    request: Any = {"model": "m", "messages": [USER], "tools": TOOLS}
    answer: Any = {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
    if as_text:
        request, answer = json.dumps(request), json.dumps(answer)
    found = SHAPES["openai-log"].read({"request": request, "response": answer})
    assert (found.messages, found.response, json.loads(found.tools)) == ((Message("user", "q"),), "a", TOOLS)
    completion = SHAPES["openai-log"].read({"request": {"prompt": "p"}, "response": {"choices": [{"text": "t"}]}})
    assert (completion.messages, completion.response) == ((Message("user", "p"),), "t")
    failed = SHAPES["openai-log"].read({"request": request, "response": {"error": {"message": "no"}}})
    assert failed.response is None


@pytest.mark.parametrize(
    ("shape", "document", "what", "place"),
    [
        (
            "chat",
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "not of type text",
            "content[0]",
        ),
        ("chat", {"messages": [USER], "tools": "search"}, "`tools` is not a list", "tools"),
        ("sharegpt", {"conversations": [{"from": "moon", "value": "x"}]}, "unknown role", "conversations[0].from"),
        ("kserve", {"inputs": [{"name": "ids", "data": [1]}]}, "no text among the inputs", "inputs"),
        ("kserve", {"inputs": [{"name": "QUERY", "data": ["a", "b"]}]}, "one text", "inputs[0].data"),
        ("openai-log", {"request": "{"}, "the body is not JSON", "request"),
        ("openai-log", {"request": {"input": 1}}, "neither `messages` nor `prompt`", "request"),
    ],
)
def test_what_does_not_fit_is_named(shape: str, document: dict[str, Any], what: str, place: str) -> None:
    with pytest.raises(Fault, match=what.replace("[", r"\[")) as caught:
        SHAPES[shape].read(document)
    assert caught.value.place.endswith(place)


def test_a_shape_is_detected_or_held_against_the_stated_one() -> None:
    for name, shape in SHAPES.items():
        assert {detect({key: "x"}, None) for key in shape.keys} == {name}
    for document, stated in (({}, None), ({"prompt": "x", "inputs": []}, None), ({"prompt": "x"}, "chat")):
        with pytest.raises(Fault):
            detect(document, stated)


def test_columns_are_mapped_also_into_objects(tmp_path: Path) -> None:
    flat = write_log(tmp_path, [{"question": "q", "team": "t", "prompt": "not this"}], "flat.jsonl")
    for fast in (True, False):
        (row,) = read(flat, columns={"prompt": "question", "segment": "team"}, fast=fast).rows
        assert (row.messages[0].content, row.segment) == ("q", "t")
    deep = write_log(tmp_path, [{"body": {"in": {"messages": [USER]}}, "meta": {"key": 7}}], "deep.jsonl")
    (row,) = read(deep, columns={"messages": "body.in.messages", "id": "meta.key"}).rows
    assert (row.messages[0].content, row.id) == ("q", "7")
