"""What every request passes: an id, the API key, a place among those in flight, and its line in the log.

The log has lengths, times and ids; never the text of a prompt or an answer.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
import traceback
import uuid
from typing import TYPE_CHECKING, Any, cast

from starlette.datastructures import Headers, MutableHeaders

from trtpipe.front.errors import ApiError
from trtpipe.front.sse import event

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from trtpipe.front.backends import Backends

log = logging.getLogger("trtpipe.front")
REQUEST_ID = "x-request-id"
# A client's own id is kept where it can stand in a header and in a line of a log.
PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
OPEN_PATHS = ("/health",)
STOPPING = ApiError(503, "the server is stopping", kind="server_error", code="stopping")


class Gate:
    """``scope["state"]`` gets the ``backend``, and ``request_id`` and ``facts``, which end up in the log."""

    def __init__(self, app: ASGIApp, backends: Backends) -> None:
        self._app = app
        self.backends = backends
        self._running: set[asyncio.Task[Any]] = set()

    def cut_off(self) -> None:
        """End the requests that are still running; their clients are told."""
        for task in self._running:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if PLAIN_ID.fullmatch(given) else uuid.uuid4().hex
        facts: dict[str, Any] = {}
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "facts": facts}
        started = time.monotonic()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        task = cast("asyncio.Task[Any]", asyncio.current_task())
        if scope["path"] not in OPEN_PATHS:  # asked while every place is taken, too
            self._running.add(task)
        try:
            refused = self._refusal(scope["path"], headers)
            with self.backends.taken() as scope["state"]["backend"]:
                await (refused.response() if refused else self._app)(scope, receive, answer)
        except asyncio.CancelledError:
            # Of `cut_off`. Nobody waits for this task, so it may end in its own way.
            facts["error"] = STOPPING.code
            if status:
                await answer({"type": "http.response.body", "body": event(STOPPING.document()), "more_body": False})
            else:
                await STOPPING.response()(scope, receive, answer)
        except Exception as fault:
            # Starlette has answered; the log does not get the message, which may hold text of the request.
            facts["fault"] = type(fault).__name__
            facts["at"] = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(fault.__traceback__)]
        finally:
            self._running.discard(task)
            self._write(scope, request_id, status, facts, started)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        if path in OPEN_PATHS:
            return None
        key, limits = self.backends.served.api_key, self.backends.served.limits
        given = headers.get("authorization", "").encode("latin-1")  # the bytes as they came
        if key is not None and not hmac.compare_digest(given, f"Bearer {key}".encode()):
            return ApiError(401, "the API key is missing or wrong", code="invalid_api_key")
        if len(self._running) > limits.requests_in_flight:
            return ApiError(
                429,
                f"{limits.requests_in_flight} requests are being served; try again",
                kind="rate_limit_error",
                code="too_many_requests",
            )
        return None

    @staticmethod
    def _write(scope: Scope, request_id: str, status: int, facts: dict[str, Any], started: float) -> None:
        if scope["path"] in OPEN_PATHS and status == 200:
            return  # asked every few seconds
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request_id": request_id,
            "method": scope["method"],
            "path": scope["path"][:100],
            "status": status,
            "seconds": round(time.monotonic() - started, 3),
            **facts,
        }
        log.info(json.dumps(line))
