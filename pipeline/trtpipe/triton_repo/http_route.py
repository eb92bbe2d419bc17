"""Requests over HTTP: Triton's ``generate`` endpoints, the stream as server-sent events.

The library is httpx: tritonclient's HTTP client knows only ``infer``, which refuses decoupled models.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, RETRY_S, NoServer, OutOfTime, Piece
from trtpipe.triton_repo.http_events import Events, body, document, endpoint, faults, piece


class HttpRoute:
    """Connections to one server, kept for further requests."""

    def __init__(self, url: str) -> None:
        self._url = url
        # trust_env: a proxy of the environment must not stand between this machine and itself.
        # As many at once as the caller has threads: who waits for a connection would seem to wait for the server.
        self._http = httpx.Client(trust_env=False, limits=httpx.Limits(max_connections=None))

    def close(self) -> None:
        self._http.close()

    def pieces(
        self, model: str, inputs: dict[str, Any], *, request_id: str, stream: bool, time_limit_s: float, retry_s: float
    ) -> Generator[Piece, None, None]:
        """Yield the pieces of the answer as they come; a closed iterator closes the connection.

        ``time_limit_s``: for the whole answer; where the server falls silent, it may take twice as long to notice.
        ``retry_s``: so long a refused connection is tried again. Raises NoServer, Refused, OutOfTime, ToolFailed.
        """
        url = endpoint(self._url, model, stream=stream)
        deadline = time.monotonic() + time_limit_s
        with self._response(url, body(inputs, request_id), time_limit_s, retry_s) as response:
            if not stream:
                yield piece(document(response.read(), response))
                return
            events = Events(response)
            for content in response.iter_bytes():
                for found in events.take(content):
                    yield piece(found)
                if time.monotonic() > deadline:
                    raise OutOfTime(time_limit_s, url)
            events.finish()

    @contextmanager
    def _response(
        self, url: str, content: dict[str, Any], time_limit_s: float, retry_s: float
    ) -> Iterator[httpx.Response]:
        timeout = httpx.Timeout(time_limit_s, connect=CONNECT_LIMIT_S)
        request = self._http.build_request("POST", url, json=content, timeout=timeout)
        with faults(url, time_limit_s):
            response = self._send(request, time.monotonic() + retry_s)
            try:
                yield response
            finally:
                response.close()

    def _send(self, request: httpx.Request, retry_until: float) -> httpx.Response:
        """Send once; only a connection that did not come about is tried again, because nothing was sent on it."""
        while True:
            try:
                return self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if time.monotonic() > retry_until:
                    raise NoServer(str(request.url)) from None
            time.sleep(RETRY_S)
