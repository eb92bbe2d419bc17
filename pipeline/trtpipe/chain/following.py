"""Goes over from the release that is served to each one that becomes current; the front's clients notice nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from trtpipe.chain import servable
from trtpipe.core import artifacts
from trtpipe.core.artifacts import Artifact
from trtpipe.core.store import Store
from trtpipe.errors import TrtpipeError
from trtpipe.front.settings import Served
from trtpipe.release.current import current_id, link
from trtpipe.triton_repo.server import Addresses, Server, wait

POLL_S = 0.5
# What a release that is damaged, or of another version, ends in.
UNSERVABLE = (TrtpipeError, OSError, ValueError, LookupError)

# Starts a server of a release on the addresses; the third says whether it is still wanted.
Start = Callable[[Artifact, Addresses, Callable[[], bool]], AbstractContextManager[Server]]


class Held:
    """A server in the hands of a thread of its own: a server ends with the thread that has started it."""

    def __init__(self, start: Start, release: Artifact, addresses: Addresses) -> None:
        self.release = release
        self.server: Future[Server] = Future()
        self._unwanted = threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(start, addresses), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the server, also while it starts; does nothing the second time."""
        self._unwanted.set()
        self._thread.join()

    def _hold(self, start: Start, addresses: Addresses) -> None:
        self.server.set_running_or_notify_cancel()
        try:
            with start(self.release, addresses, self._unwanted.is_set) as server:
                self.server.set_result(server)
                self._unwanted.wait()
        except BaseException as fault:
            if self.server.done():
                raise
            self.server.set_exception(fault)


@contextmanager
def held(start: Start, release: Artifact, addresses: Addresses) -> Iterator[Held]:
    """Give a server that is ready. Raises what its start raises."""
    first = Held(start, release, addresses)
    try:
        first.server.result()
        yield first
    finally:
        first.end()


@dataclass(frozen=True)
class Following:
    """``addresses``: of two servers, which take turns. ``served``: what the front is told of a release there.

    ``go_over``: sends new requests to a server, waits for the end of the others, returns how many have not ended.
    """

    store: Store
    start: Start
    addresses: tuple[Addresses, Addresses]
    served: Callable[[Artifact, Addresses], Served]
    go_over: Callable[[Served], Awaitable[int]]
    note: Callable[[str], None]

    async def run(self, first: Held) -> None:
        """Go over whenever another release is current. Raises ToolFailed where a server ends by itself."""
        now, seen = first, first.release.id
        try:
            while now.server.result().supervisor.poll() is None:
                await asyncio.sleep(POLL_S)
                current = current_id(self.store)
                if current is not None and current not in (seen, now.release.id):
                    now = await self._go_over(now, current)
                seen = current or seen
        finally:
            await asyncio.to_thread(now.end)
        wait(now.server.result())

    async def _go_over(self, now: Held, current: str) -> Held:
        """Return a server of the current release that the front has gone over to; ``now`` where that can't be."""
        used = now.server.result().addresses
        addresses = next(others for others in self.addresses if others != used)
        self.note(f"release {current} is current now; it is started beside {now.release.id}")
        after: Held | None = None
        try:
            release = artifacts.read(link(self.store).resolve())
            await asyncio.to_thread(servable.require, release, self.note)
            served = await asyncio.to_thread(self.served, release, addresses)
            after = Held(self.start, release, addresses)
            await asyncio.wrap_future(after.server)
            left = await self.go_over(served)
            await asyncio.to_thread(now.end)
        except UNSERVABLE as fault:
            await _end(after)
            self.note(
                f"release {current} can't be served, {now.release.id} still is: {fault}; `trtpipe rollback`, then "
                f"`trtpipe promote {current}` has it tried again"
            )
            return now
        except BaseException:  # the front ends
            await _end(after)
            raise
        cut = f"; {left} requests to {now.release.id} were cut off" if left else ""
        self.note(f"release {release.id} is served, by Triton at {addresses.http_url}{cut}")
        return after


async def _end(started: Held | None) -> None:
    if started is not None:
        await asyncio.to_thread(started.end)
