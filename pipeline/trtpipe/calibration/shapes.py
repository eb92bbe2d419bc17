"""The shapes that logs are written in: each turns one row's document into a conversation.

plain           {"prompt": text, "response"?: text}
chat            {"messages": [{"role", "content"}], "tools"?: [...], "response"?: text}   (OpenAI)
sharegpt        {"conversations": [{"from", "value"}], "system"?: text}
kserve          {"text_input": text, "text_output"?: text}, or {"inputs": [{"name", "data": [text]}], "outputs"?: [...]}
openai-log      {"request": body, "response": body}; a body is an object or its JSON text
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trtpipe.calibration.messages import Fault, conversation_list, json_text, listed, plain_text, split_answer, text
from trtpipe.calibration.row import Message

KSERVE_TEXTS = ("text_input", "QUERY", "prompt", "text")
KSERVE_ANSWERS = ("text_output", "OUTPUT", "text", "response")
SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


class Conversation(NamedTuple):
    """What a row says: the messages up to the answer, the answer if the log has it, tool definitions as JSON."""

    messages: tuple[Message, ...]
    response: str | None
    tools: str = ""


Document = Mapping[str, Any]


def plain(document: Document) -> Conversation:
    return Conversation((Message("user", plain_text(document["prompt"], "prompt")),), text(document, "response"))


def chat(document: Document) -> Conversation:
    messages = conversation_list(document["messages"], "messages")
    tools = document.get("tools")
    if tools is not None:
        tools = json_text(listed(tools, "tools"), "tools") if tools else ""
    return Conversation(*split_answer(messages, text(document, "response")), tools or "")


def sharegpt(document: Document) -> Conversation:
    turns = listed(document["conversations"], "conversations")
    system = text(document, "system")
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    for index, turn in enumerate(turns):
        place = f"conversations[{index}]"
        if not isinstance(turn, dict):
            raise Fault("a turn is not an object", place, 'for instance {"from": "human", "value": "..."}')
        if not isinstance(turn.get("from"), str) or turn["from"] not in SHAREGPT_ROLES:
            raise Fault("unknown role", f"{place}.from", f"one of {', '.join(SHAREGPT_ROLES)}")
        messages.append({"role": SHAREGPT_ROLES[turn["from"]], "content": turn.get("value")})
    return Conversation(*split_answer(conversation_list(messages, "conversations"), text(document, "response")))


def kserve(document: Document) -> Conversation:
    """Read a KServe or Triton body; its text may itself be ``{"messages": [...]}``, as this project's server takes."""
    if document.get("text_input") is not None:
        prompt, answer = plain_text(document["text_input"], "text_input"), text(document, "text_output")
    else:
        found = _tensor_text(document["inputs"], KSERVE_TEXTS, "inputs")
        if found is None:
            raise Fault("no text among the inputs", "inputs", f"name one of them {', '.join(KSERVE_TEXTS)}")
        prompt = found
        answer = _tensor_text(document["outputs"], KSERVE_ANSWERS, "outputs") if document.get("outputs") else None
    inner = _inner_chat(prompt)
    if inner is not None:
        return chat({**inner, "response": answer})
    return Conversation((Message("user", prompt),), answer)


def openai_log(document: Document) -> Conversation:
    """Read an access log's bodies; a completion's ``prompt`` counts as one user message."""
    request = _body(document["request"], "request")
    answer = _answer(_body(document["response"], "response")) if document.get("response") is not None else None
    if request.get("messages") is not None:
        return chat({"messages": request["messages"], "tools": request.get("tools"), "response": answer})
    if request.get("prompt") is None:
        raise Fault("the request body has neither `messages` nor `prompt`", "request", "log the whole body")
    return Conversation((Message("user", plain_text(request["prompt"], "request.prompt")),), answer)


class Shape(NamedTuple):
    """``keys``: a row that has one of them is of this shape."""

    keys: tuple[str, ...]
    read: Callable[[Document], Conversation]


SHAPES = {
    "plain": Shape(("prompt",), plain),
    "chat": Shape(("messages",), chat),
    "sharegpt": Shape(("conversations",), sharegpt),
    "kserve": Shape(("text_input", "inputs"), kserve),
    "openai-log": Shape(("request",), openai_log),
}


def detect(document: Document, stated: str | None) -> str:
    """Return the row's shape. Raises Fault where no shape or more than one fits, or not the stated one."""
    if stated is not None:
        if all(document.get(key) is None for key in SHAPES[stated].keys):
            raise Fault(f"no key of the shape {stated}", "", "correct prompts.shape or prompts.columns")
        return stated
    found = {key: name for name, shape in SHAPES.items() for key in shape.keys if document.get(key) is not None}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        keys = ", ".join(f"`{key}`" for shape in SHAPES.values() for key in shape.keys)
        raise Fault(f"none of {keys}", "", "add one of them, or name the columns in prompts.columns")
    raise Fault(f"both {' and '.join(f'`{key}`' for key in found)}", "", "keep the one that was sent")


def _tensor_text(tensors: Any, names: tuple[str, ...], place: str) -> str | None:
    for index, tensor in enumerate(listed(tensors, place)):
        if isinstance(tensor, dict) and tensor.get("name") in names:
            data = tensor.get("data")
            while isinstance(data, list) and len(data) == 1:
                data = data[0]
            if not isinstance(data, str):
                raise Fault("the tensor does not hold one text", f"{place}[{index}].data", "log one request a row")
            return plain_text(data, f"{place}[{index}].data")
    return None


def _inner_chat(prompt: str) -> Document | None:
    if not prompt.startswith("{"):
        return None
    try:
        inner = json.loads(prompt)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, dict) and "messages" in inner else None


def _body(value: Any, place: str) -> Document:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise Fault("the body is not JSON", place, "log the whole body") from None
    if not isinstance(value, dict):
        raise Fault("the body is not an object", place, "log the whole body")
    return value


def _answer(body: Document) -> str | None:
    """Return the first choice's text; what was no answer (an error, a tool call) is None."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return None
    message = first.get("message")
    found = message.get("content") if isinstance(message, dict) else first.get("text")
    return plain_text(found, "response") if isinstance(found, str) else None
