"""Runs the front in this process until somebody asks for its end, or what it stands before has ended."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

import uvicorn

from trtpipe.core import hosts
from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtpipe.front.gate import Gate

POLL_S = 0.25
CUT_OFF_S = 3.0  # for requests that are cut off to say so
LOG_BYTES, LOGS_KEPT = 64 << 20, 4
LOGGERS = {"trtpipe.front": logging.INFO, "uvicorn.error": logging.WARNING}


def bind(host: str, port: int) -> socket.socket:
    """Take the port without listening yet. Raises EnvironmentUnfit where that is impossible."""
    try:
        return hosts.listener(host, port)
    except OSError as fault:
        raise EnvironmentUnfit(
            f"the front can't listen on {host}:{port}: {fault.strerror}",
            where="serving.front_port",
            fix="choose another address or port",
        ) from None


def run(
    app: Gate,
    taken: socket.socket,
    *,
    drain_s: float,
    log: Path,
    on_ready: Callable[[], None],
    until: Callable[[], Awaitable[None]],
) -> None:
    """Serve until SIGINT, SIGTERM or the end of ``until``; then accept nothing more and let running requests end.

    ``until`` runs in the front's event loop; it is cancelled when the front has ended otherwise, and what it raises is
    raised. ``drain_s``: what is still running then is cut off. The signal is raised again at the end.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(drain_s + CUT_OFF_S),
    )
    with _logging_to(log):
        asyncio.run(_run(_Server(config, app, drain_s), taken, on_ready, until))


async def ended(has_ended: Callable[[], bool]) -> None:
    """Return once something has ended."""
    while not has_ended():
        await asyncio.sleep(POLL_S)


class _Server(uvicorn.Server):
    """Cuts off in its own words what runs for too long after a stop; uvicorn would break the connections."""

    def __init__(self, config: uvicorn.Config, gate: Gate, drain_s: float) -> None:
        super().__init__(config)
        self._gate = gate
        self._drain_s = drain_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._drain_s, self._gate.cut_off)
        await super().shutdown(sockets)


async def _run(
    server: uvicorn.Server, taken: socket.socket, on_ready: Callable[[], None], until: Callable[[], Awaitable[None]]
) -> None:
    watching = asyncio.ensure_future(_watch(server, on_ready, until))
    try:
        await server.serve(sockets=[taken])
    finally:
        await _end(watching)
    if not watching.cancelled() and (fault := watching.exception()) is not None:
        raise fault


async def _end(watching: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; a Ctrl-C, which cancels the one that waits, is passed on after that."""
    watching.cancel()
    try:
        await asyncio.wait([watching])
    except asyncio.CancelledError:
        await asyncio.wait([watching])
        raise


async def _watch(server: uvicorn.Server, on_ready: Callable[[], None], until: Callable[[], Awaitable[None]]) -> None:
    await ended(lambda: server.started)
    on_ready()
    try:
        await until()
    finally:
        server.should_exit = True


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(LOGGERS[logger.name])
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        handler.close()
