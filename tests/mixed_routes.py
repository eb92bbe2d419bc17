"""Every route to a served release: two models over HTTP and gRPC, and the front; in one piece and as a stream."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai

from trtpipe.client import AsyncClient
from trtpipe.triton_repo import exchange, http_events
from trtpipe.triton_repo.exchange import Model, Options
from trtpipe.triton_repo.server import Server

CHAT, COMPLETION = "front chat", "front completion"
FRONT_MODEL = "sample"
PROMPTS = (
    "Name three things that a delivery note must say.",
    "请用中文回答：什么是发票？",
    "ما هي عاصمة فرنسا؟",
    "Reply with emoji: 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽",
    "Write a line of Python that adds two numbers, and\n\n  keep its  spaces.",
)


@dataclass(frozen=True)
class Route:
    """``way``: a model of Triton's, or an endpoint of the front; ``scheme``: how it is reached."""

    way: str
    scheme: str
    stream: bool

    def __str__(self) -> str:
        return f"{self.way}, {self.scheme}, {'stream' if self.stream else 'unary'}"


ROUTES = [
    *(Route(*found) for found in product(exchange.MODELS, ("http", "grpc"), (False, True))),
    *(Route(*found) for found in product((CHAT, COMPLETION), ("http",), (False, True))),
]


@dataclass(frozen=True)
class Got:
    """An answer: its text, the engine's count of its tokens, and in how many texts it came."""

    text: str
    tokens: int
    chunks: int


class Asker:
    """Connections for every route. To be used within one event loop."""

    def __init__(self, clients: dict[tuple[str, str], AsyncClient], front: openai.AsyncOpenAI) -> None:
        self._clients = clients
        self._front = front

    async def ask(self, route: Route, prompt: str, tokens: int, *, exactly: bool, time_limit_s: float) -> Got:
        """Ask greedily for up to ``tokens`` tokens. ``exactly``: the answer does not end before."""
        if route.way not in exchange.MODELS:
            return await self._ask_front(route, prompt, tokens, exactly, time_limit_s)
        options: Options = {"end_id": -1} if exactly else {}
        client = self._clients[route.way, route.scheme]
        async with client.pieces(
            prompt, max_tokens=tokens, stream=route.stream, time_limit_s=time_limit_s, **options
        ) as pieces:
            found = [piece async for piece in pieces]
        texts = [piece.text for piece in found if piece.text]
        return Got("".join(texts), sum(piece.new_tokens or 0 for piece in found), len(texts))

    async def _ask_front(self, route: Route, prompt: str, tokens: int, exactly: bool, time_limit_s: float) -> Got:
        options: dict[str, Any] = {
            "max_tokens": tokens,
            "temperature": 0,
            "model": FRONT_MODEL,
            "timeout": time_limit_s,
        }
        options["extra_body"] = {"min_tokens": tokens} if exactly else {}
        if route.stream:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        if route.way == CHAT:
            answer: Any = await self._front.chat.completions.create(
                messages=[{"role": "user", "content": prompt}], **options
            )
        else:
            answer = await self._front.completions.create(prompt=prompt, **options)
        chunks = [chunk async for chunk in answer] if route.stream else [answer]
        texts = [_text(chunk.choices[0], route) or "" for chunk in chunks if chunk.choices]
        texts = [text for text in texts if text]
        return Got("".join(texts), chunks[-1].usage.completion_tokens, len(texts))


def _text(choice: Any, route: Route) -> str | None:
    if route.way == COMPLETION:
        return str(choice.text)
    found: str | None = (choice.delta if route.stream else choice.message).content
    return found


@asynccontextmanager
async def asker(running: Server, front_url: str, key: str) -> AsyncIterator[Asker]:
    addresses = running.addresses
    urls = {"http": addresses.http_url, "grpc": addresses.grpc_url}
    clients = {
        (model, scheme): AsyncClient(url, model=model)
        for model, (scheme, url) in product(exchange.MODELS, urls.items())
    }
    plain = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))
    front = openai.AsyncOpenAI(base_url=f"{front_url}/v1", api_key=key, max_retries=0, http_client=plain)
    try:
        yield Asker(clients, front)
    finally:
        await front.close()
        for client in clients.values():
            await client.close()


def send_by_hand(url: str, model: Model, prompt: str, tokens: int, *, stream: bool) -> socket.socket:
    """Send a request over HTTP and return its socket, for the caller to close."""
    address = urlsplit(url)
    content = json.dumps({"text_input": prompt, "max_tokens": tokens, "end_id": -1, "stream": stream}).encode()
    path = http_events.endpoint("", model, stream=stream)
    head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(content)}\r\n\r\n"
    sent = socket.create_connection((address.hostname, address.port))
    sent.sendall(head.encode() + content)
    return sent
