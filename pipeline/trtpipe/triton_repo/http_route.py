"""A request over HTTP: Triton's ``generate`` endpoints, the stream as server-sent events. The library is httpx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from trtpipe.errors import EnvironmentUnfit, ToolFailed

CONNECT_LIMIT_S = 5.0


def texts(url: str, model: str, inputs: dict[str, Any], *, stream: bool, time_limit_s: float) -> Iterator[str]:
    """Yield the texts of the answer as they come; a closed iterator closes the connection.

    Raises EnvironmentUnfit where no server answers, ToolFailed with the server's words where it refuses or fails.
    """
    endpoint = f"{url}/v2/models/{model}/generate" + ("_stream" if stream else "")
    with _request(endpoint, inputs, time_limit_s) as response:
        for document in _events(response) if stream else [_document(response.read(), response)]:
            yield document["text_output"]


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
        raise ToolFailed(f"no answer within {time_limit_s:g} s", where=url, fix="see the server's log") from None
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
