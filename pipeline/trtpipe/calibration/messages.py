"""The parts that the shapes are made of: texts, lists and OpenAI messages, each checked and named when wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trtpipe.calibration.row import ROLES, Message

TEMPLATE_KEYS = ("tool_calls", "tool_call_id", "name")


class Fault(Exception):  # noqa: N818 - what is wrong with one row
    """``what`` never holds the row's text. ``place``: where in the row. ``fix``: what to do."""

    def __init__(self, what: str, place: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.place = place
        self.fix = fix


def plain_text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise Fault(f"`{place}` is not text", place, "give a string")
    try:
        value.encode()
    except UnicodeEncodeError as fault:  # JSON can escape half a character; no tokenizer can encode it
        what = f"half a surrogate pair at character {fault.start}"
        raise Fault(what, place, "correct the escape in that row") from None
    return value


def text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    return None if value is None else plain_text(value, name)


def listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise Fault(f"`{place}` is not a list", place, "give a list")
    return value


def json_text(value: Any, place: str) -> str:
    """Return a value as JSON with sorted keys, so that equal values are equal texts."""
    return plain_text(json.dumps(value, ensure_ascii=False, sort_keys=True), place)


def conversation_list(value: Any, place: str) -> list[Message]:
    return [_message(message, f"{place}[{index}]") for index, message in enumerate(listed(value, place))]


def split_answer(messages: list[Message], response: str | None) -> tuple[tuple[Message, ...], str | None]:
    """Take a closing answer off the conversation, unless the row gives its response apart."""
    if response is None and messages and messages[-1].role == "assistant":
        *messages, last = messages
        response = last.content
    if not messages:
        raise Fault("the conversation holds no prompt", "", "add a user message")
    return tuple(messages), response


def _message(value: Any, place: str) -> Message:
    if not isinstance(value, dict):
        raise Fault("a message is not an object", place, 'for instance {"role": "user", "content": "..."}')
    role = value.get("role")
    if role == "developer":  # OpenAI's newer name
        role = "system"
    if role not in ROLES:
        raise Fault("unknown role", f"{place}.role", f"one of {', '.join(ROLES)}")
    more = {key: value[key] for key in TEMPLATE_KEYS if value.get(key) is not None}
    content = value.get("content")
    if content is None and "tool_calls" in more:
        content = ""
    if isinstance(content, list):
        content = "\n".join(_part(part, f"{place}.content[{index}]") for index, part in enumerate(content))
    if not isinstance(content, str):
        raise Fault("the content is not text", f"{place}.content", "give a string, or a list of text parts")
    return Message(role, plain_text(content, f"{place}.content"), json_text(more, place) if more else "")


def _part(part: Any, place: str) -> str:
    """Return a content part's text. A picture or a sound can't be left out: the prompt would be another one."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in ("text", "input_text"):
        raise Fault("a content part is not of type text", place, "leave rows with pictures or sounds out of the log")
    return plain_text(part.get("text"), f"{place}.text")
