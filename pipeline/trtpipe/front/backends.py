"""What requests are passed on to: one server at a time, each with the requests that it has been given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from trtpipe.core.token_bytes import TokenBytes
from trtpipe.front.settings import Served
from trtpipe.triton_repo.aio_client import AsyncClient


class Backend:
    """One release behind Triton. ``requests``: those that it answers. To be made within the event loop."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.client = AsyncClient(served.triton_url)
        self.table = TokenBytes(served.tokenizer.tokenizer)
        self.requests = 0
        self.idle = asyncio.Event()
        self.idle.set()


class Backends:
    """``served``: of the server that new requests go to. Earlier servers end the requests that they have."""

    def __init__(self, first: Served) -> None:
        self.served = first
        self._now: Backend

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self._now = Backend(self.served)
        try:
            yield
        finally:
            await self._now.client.close()

    @contextmanager
    def taken(self) -> Iterator[Backend]:
        """Give the server that new requests go to; within the block it has one more."""
        backend = self._now
        backend.requests += 1
        backend.idle.clear()
        try:
            yield backend
        finally:
            backend.requests -= 1
            if not backend.requests:
                backend.idle.set()

    async def go_over(self, served: Served, *, limit_s: float) -> int:
        """Let new requests go to another server, and wait until the one before has ended its own.

        Returns how many of those have not ended after ``limit_s``; they are broken off.
        """
        before, self._now = self._now, Backend(served)
        self.served = served
        try:
            async with asyncio.timeout(limit_s):
                await before.idle.wait()
        except TimeoutError:
            pass
        finally:
            await before.client.close()
        return before.requests
