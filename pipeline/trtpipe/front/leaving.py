"""Clients that leave before their answer is there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

CLOSED = 499  # nginx's status for it; nobody gets it, the log shows it

Result = TypeVar("Result")


class ClientLeft(Exception):  # noqa: N818 - it says what happened
    """The client has closed its connection."""


async def unless_left(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return what ``work`` returns; cancel it and raise ClientLeft when the client leaves first.

    To be called once the request's body has been read.
    """
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        task.cancel()
        left.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
