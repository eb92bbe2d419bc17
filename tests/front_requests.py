"""Requests to the front of ``front/conftest.py``, and its streams read."""

from __future__ import annotations

import json
from typing import Any

import httpx

CHAT: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]}
COMPLETION: dict[str, Any] = {"model": "tiny", "prompt": "Hello"}


def chat(front: httpx.Client, **fields: Any) -> httpx.Response:
    return front.post("/v1/chat/completions", json=CHAT | fields)


def events(response: httpx.Response) -> list[Any]:
    assert response.headers["content-type"].startswith("text/event-stream")
    *found, last = [block.removeprefix("data: ") for block in response.text.split("\n\n") if block]
    return [*map(json.loads, found), last]
