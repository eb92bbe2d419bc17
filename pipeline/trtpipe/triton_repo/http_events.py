"""What Triton's ``generate`` endpoints send, read without a connection: documents, events, faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from trtpipe.errors import ToolFailed
from trtpipe.triton_repo.exchange import NoServer, OutOfTime, Piece, Refused, Unavailable

KINDS = {400: Refused, 503: Unavailable}


def endpoint(url: str, model: str, *, stream: bool) -> str:
    return f"{url}/v2/models/{model}/generate" + ("_stream" if stream else "")


def body(inputs: dict[str, Any], request_id: str) -> dict[str, Any]:
    return {**inputs, "id": request_id} if request_id else inputs


def piece(found: dict[str, Any]) -> Piece:
    log_probs, ids = _numbers(found.get("output_log_probs")), _numbers(found.get("log_prob_ids"))
    return Piece(
        found["text_output"],
        found.get("num_input_tokens"),
        found.get("num_output_tokens"),
        None if log_probs is None else tuple(map(float, log_probs)),
        None if ids is None else tuple(ids),
    )


def _numbers(found: Any) -> list[Any] | None:
    return [found] if isinstance(found, int | float) else found  # Triton writes a list of one without its brackets


class Events:
    """Cuts a stream of server-sent events into documents.

    Cut at line feeds only: JSON texts may hold other characters that count as line ends elsewhere.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._rest = b""

    def take(self, content: bytes) -> Iterator[dict[str, Any]]:
        """Take what has arrived and yield the documents that are whole. Raises as ``document`` does."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield document(line.removeprefix(b"data:"), self._response)

    def finish(self) -> None:
        """Raise ToolFailed where something is left that is no event: a refusal comes as bare JSON."""
        if self._rest.strip():
            document(self._rest, self._response)


def document(content: bytes, response: httpx.Response) -> dict[str, Any]:
    """Read one document. Raises ToolFailed or a kind of it (KINDS); Triton sends some errors with status 200."""
    try:
        found: dict[str, Any] = json.loads(content)
    except ValueError:
        found = {"error": content.decode(errors="replace").strip() or "no content"}
    if "error" in found or response.is_error:
        raise KINDS.get(response.status_code, ToolFailed)(
            f"the server answered {response.status_code}: {found.get('error', found)}",
            where=str(response.url),
            fix="correct the request" if response.is_client_error else "see the server's log",
        )
    return found


@contextmanager
def faults(url: str, time_limit_s: float) -> Iterator[None]:
    """Turn what a connection ends in into NoServer, OutOfTime or ToolFailed."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout):
        raise NoServer(url) from None
    except httpx.TimeoutException:
        raise OutOfTime(time_limit_s, url) from None
    except httpx.TransportError as fault:
        raise broken(fault, url) from None


def broken(fault: httpx.TransportError, url: str) -> ToolFailed:
    return ToolFailed(f"the connection broke: {fault or type(fault).__name__}", where=url, fix="see the server's log")
