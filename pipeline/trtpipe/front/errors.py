"""Errors in OpenAI's shape, with the product's words: what is wrong and what to do about it."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from trtpipe.errors import TrtpipeError
from trtpipe.triton_repo.exchange import NoServer, OutOfTime, Refused, Unavailable

INVALID = "invalid_request_error"


class ApiError(Exception):
    """Answers a request with ``status``. ``param``: the field at fault; ``code``: for programs."""

    def __init__(
        self, status: int, message: str, *, kind: str = INVALID, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self._error = {"message": message, "type": kind, "param": param, "code": code}

    @property
    def code(self) -> str:
        """A word for the log."""
        return self._error["code"] or self._error["type"] or ""

    def document(self) -> dict[str, Any]:
        return {"error": self._error}

    def response(self) -> JSONResponse:
        headers = {"Retry-After": "1"} if self.status in (429, 503) else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.document(), self.status, headers)


def from_fault(fault: TrtpipeError) -> ApiError:
    """Return what a client hears of a fault between front and engine; addresses and logs are not its business."""
    match fault:
        case Refused():
            return ApiError(400, fault.what)
        case OutOfTime():
            return ApiError(504, fault.what, kind="server_error", code="timeout")
        case Unavailable():
            return ApiError(503, fault.what, kind="server_error", code="unavailable")
        case NoServer():
            return ApiError(503, "the model is not available", kind="server_error", code="unavailable")
        case _:
            return ApiError(502, fault.what, kind="server_error", code="engine_failed")
