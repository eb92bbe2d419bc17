"""Ask a served model over HTTP, in one piece or as a stream. The HTTP library is httpx."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from trtpipe.errors import EnvironmentUnfit, ToolFailed

ENSEMBLE = "/v2/models/ensemble/generate"
TIME_LIMIT_S = 120.0
CONNECT_LIMIT_S = 5.0


@dataclass(frozen=True)
class Answer:
    """``chunks``: non-empty texts that arrived, one for a unary request; ``first_chunk_s``: time to the first."""

    text: str
    chunks: int
    first_chunk_s: float
    seconds: float


def ask(
    http_url: str,
    prompt: str | Sequence[dict[str, str]],
    *,
    max_tokens: int,
    stream: bool = False,
    options: dict[str, Any] | None = None,
    on_chunk: Callable[[str], None] = lambda text: None,
    time_limit_s: float = TIME_LIMIT_S,
) -> Answer:
    """Send one prompt (text, or messages with role and content) and return the answer.

    ``options``: further inputs of the ensemble, such as temperature. ``on_chunk`` gets each piece of text as it comes.
    Raises EnvironmentUnfit where no server answers, ToolFailed with the server's words where it refuses or fails.
    """
    text_input = prompt if isinstance(prompt, str) else json.dumps({"messages": list(prompt)}, ensure_ascii=False)
    body = {"text_input": text_input, "max_tokens": max_tokens, "stream": stream, **(options or {})}
    started = time.monotonic()
    arrivals: list[float] = []
    texts: list[str] = []
    with _request(http_url + ENSEMBLE + ("_stream" if stream else ""), body, time_limit_s) as response:
        for document in _events(response) if stream else [_document(response.read(), response)]:
            if text := document["text_output"]:
                arrivals.append(time.monotonic() - started)
                texts.append(text)
                on_chunk(text)
    seconds = time.monotonic() - started
    return Answer("".join(texts), len(texts), arrivals[0] if arrivals else seconds, seconds)


@contextmanager
def _request(url: str, body: dict[str, Any], time_limit_s: float) -> Iterator[httpx.Response]:
    timeout = httpx.Timeout(time_limit_s, connect=CONNECT_LIMIT_S)
    try:
        # trust_env: a proxy of the environment must not stand between this machine and itself.
        with httpx.stream("POST", url, json=body, timeout=timeout, trust_env=False) as response:
            yield response
    except httpx.ConnectError:
        raise EnvironmentUnfit(
            "no server answers", where=url, fix="start one with `trtpipe serve`, or check the address"
        ) from None
    except httpx.TimeoutException:
        raise ToolFailed(f"no answer within {time_limit_s:.0f} s", where=url, fix="see the server's log") from None
    except httpx.TransportError as fault:
        raise ToolFailed(f"the connection broke: {fault}", where=url, fix="see the server's log") from None


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the documents of a server-sent event stream.

    Cut at line feeds only: JSON texts may hold other characters that count as line ends elsewhere.
    """
    buffer = b""
    for chunk in response.iter_bytes():
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield _document(line.removeprefix(b"data:"), response)
    if buffer.strip():
        yield _document(buffer, response)


def _document(content: bytes, response: httpx.Response) -> dict[str, Any]:
    """Read one response. Triton sends some errors with status 200."""
    try:
        document: dict[str, Any] = json.loads(content)
    except ValueError:
        document = {"error": content.decode(errors="replace").strip() or "no content"}
    if "error" in document or response.is_error:
        raise ToolFailed(
            f"the server answered {response.status_code}: {document.get('error', document)}",
            where=str(response.url),
            fix="correct the request" if response.is_client_error else "see the server's log",
        )
    return document
