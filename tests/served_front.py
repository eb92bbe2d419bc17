"""A front that really listens, in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtpipe.front import app, server
from trtpipe.front.settings import Served


@contextmanager
def listening(served: Served, log: Path, *, drain_s: float = 5.0) -> Iterator[str]:
    """Run the front until the block ends; gives its address."""
    ready, stop = threading.Event(), threading.Event()
    taken = server.bind("127.0.0.1", 0)
    address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    front = threading.Thread(
        target=server.run,
        args=(app.build(served), taken),
        kwargs={"drain_s": drain_s, "log": log, "on_ready": ready.set, "until": lambda: server.ended(stop.is_set)},
    )
    front.start()
    try:
        if not ready.wait(30):
            raise TimeoutError("the front does not listen")
        yield address
    finally:
        stop.set()
        front.join()
