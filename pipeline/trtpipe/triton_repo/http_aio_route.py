"""``http_route`` for asyncio. Cancelling the task, or closing the iterator, closes the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, RETRY_S, NoServer, OutOfTime, Piece
from trtpipe.triton_repo.http_events import Events, body, broken, document, endpoint, piece


class HttpAioRoute:
    """Connections to one server, kept for further requests."""

    def __init__(self, url: str) -> None:
        self._url = url
        # As many connections as requests are in flight; the default of 100 would make the others wait.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        # trust_env: a proxy of the environment must not stand between this machine and itself.
        self._http = httpx.AsyncClient(trust_env=False, limits=limits)

    async def close(self) -> None:
        await self._http.aclose()

    async def is_ready(self, model: str) -> bool:
        try:
            response = await self._http.get(f"{self._url}/v2/models/{model}/ready", timeout=CONNECT_LIMIT_S)
        except httpx.TransportError:
            return False
        return response.is_success

    async def pieces(
        self, model: str, inputs: dict[str, Any], *, request_id: str, stream: bool, time_limit_s: float, retry_s: float
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of the answer as they come. Raises NoServer, Refused, OutOfTime, ToolFailed."""
        url = endpoint(self._url, model, stream=stream)
        deadline = asyncio.get_running_loop().time() + time_limit_s
        with _faults(url, time_limit_s):
            async with self._response(url, body(inputs, request_id), deadline, retry_s) as response:
                if not stream:
                    async with asyncio.timeout_at(deadline):
                        whole = await response.aread()
                    yield piece(document(whole, response))
                    return
                events, contents = Events(response), response.aiter_bytes()
                # The limit is set anew around each wait: the iterator may be driven by one task after another.
                while (content := await _next(contents, deadline)) is not None:
                    for found in events.take(content):
                        yield piece(found)
                events.finish()

    @asynccontextmanager
    async def _response(
        self, url: str, content: dict[str, Any], deadline: float, retry_s: float
    ) -> AsyncIterator[httpx.Response]:
        timeout = httpx.Timeout(None, connect=CONNECT_LIMIT_S)
        request = self._http.build_request("POST", url, json=content, timeout=timeout)
        async with asyncio.timeout_at(deadline):
            response = await self._send(request, time.monotonic() + retry_s)
        try:
            yield response
        finally:
            await response.aclose()

    async def _send(self, request: httpx.Request, retry_until: float) -> httpx.Response:
        while True:
            try:
                return await self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if time.monotonic() > retry_until:
                    raise NoServer(str(request.url)) from None
            await asyncio.sleep(RETRY_S)


@contextmanager
def _faults(url: str, time_limit_s: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise OutOfTime(time_limit_s, url) from None
    except httpx.TransportError as fault:
        raise broken(fault, url) from None


async def _next(contents: AsyncIterator[bytes], deadline: float) -> bytes | None:
    async with asyncio.timeout_at(deadline):
        return await anext(contents, None)
