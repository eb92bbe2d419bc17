"""The endpoints: ``/v1/chat/completions``, ``/v1/completions``, ``/v1/models`` and ``/health``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trtpipe.errors import TrtpipeError
from trtpipe.front import sse
from trtpipe.front.answer import ChatForm, CompletionForm, Finish, Form, Usage
from trtpipe.front.backends import Backend, Backends
from trtpipe.front.bodies import ChatBody, CompletionBody
from trtpipe.front.errors import ApiError, from_fault
from trtpipe.front.gate import Gate
from trtpipe.front.leaving import CLOSED, ClientLeft, unless_left
from trtpipe.front.question import Question, ask, check
from trtpipe.front.read import read
from trtpipe.front.said import Said, join

if TYPE_CHECKING:
    from starlette.requests import Request

    from trtpipe.front.settings import Served

# A client that sends slower is let go.
BODY_S = 30.0


async def chat(request: Request) -> Response:
    body = read(ChatBody, await _content(request))
    return await _answer(request, body, ChatForm)


async def complete(request: Request) -> Response:
    body = read(CompletionBody, await _content(request))
    return await _answer(request, body, CompletionForm)


async def models(request: Request) -> Response:
    return JSONResponse({"object": "list", "data": [_model(_backend(request).served)]})


async def model(request: Request) -> Response:
    name, served = request.path_params["name"], _backend(request).served
    if name != served.model:
        raise ApiError(404, f"the model `{name}` is not served here", param="model", code="model_not_found")
    return JSONResponse(_model(served))


async def health(request: Request) -> Response:
    ready = await _backend(request).client.is_ready()
    return JSONResponse({"ready": ready}, 200 if ready else 503)


def _backend(request: Request) -> Backend:
    """Return the server that this request belongs to, which stays the same while it is answered."""
    return cast("Backend", request.state.backend)


def _model(served: Served) -> dict[str, Any]:
    return {
        "id": served.model,
        "object": "model",
        "created": served.created,
        "owned_by": "trtpipe",
        "max_model_len": served.limits.context_tokens,
    }


async def _content(request: Request) -> bytes:
    """Read the body. Raises ApiError where it is too large or too slow."""
    limit = _backend(request).served.limits.body_bytes
    too_large = ApiError(413, f"the body is larger than {limit} bytes", code="body_too_large")
    if int(request.headers.get("content-length", 0)) > limit:
        raise too_large
    content = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                content += part
                if len(content) > limit:
                    raise too_large
    except TimeoutError:
        raise ApiError(408, f"the body did not come within {BODY_S:g} s") from None
    return content


async def _answer(request: Request, body: ChatBody | CompletionBody, kind: type[Form]) -> Response:
    backend = _backend(request)
    question = await check(body, backend.served)
    in_stream = body.stream_options is not None and body.stream_options.include_usage
    form = kind(request.state.request_id, backend.served.model, in_stream)
    request.state.facts.update(prompt_tokens=question.prompt_tokens, stream=bool(body.stream))
    usage = Usage(question.prompt_tokens)
    parts = ask(question, backend, usage, form.request_id)
    if body.stream:
        # Waits for the first part, so that what is refused gets a status of its own.
        first = await unless_left(request, anext(parts, None))
        return sse.EventStream(_events(request, question, form, usage, first, parts))
    async with aclosing(parts):
        whole = join(await unless_left(request, _all(parts)))
    return JSONResponse(form.whole(whole, _end(request, question, usage), usage))


async def _events(
    request: Request,
    question: Question,
    form: Form,
    usage: Usage,
    first: Said | None,
    rest: AsyncGenerator[Said, None],
) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        for document in form.opening():
            yield sse.event(document)
        try:
            if first is not None:
                yield sse.event(form.piece(first))
            async for part in rest:
                yield sse.event(form.piece(part))
        except TrtpipeError as fault:
            request.state.facts["error"] = from_fault(fault).code
            yield sse.event(from_fault(fault).document())
            return
        for document in form.closing(_end(request, question, usage), usage):
            yield sse.event(document)
        yield sse.DONE


def _end(request: Request, question: Question, usage: Usage) -> Finish:
    """Say how an answer ended."""
    finish: Finish = "length" if usage.completion_tokens >= question.answer_tokens else "stop"
    request.state.facts.update(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, finish_reason=finish
    )
    return finish


async def _all(parts: AsyncGenerator[Said, None]) -> list[Said]:
    return [part async for part in parts]


def build(served: Served) -> Gate:
    """Return the ASGI application."""
    backends = Backends(served)
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", complete, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/health", health),
        ],
        exception_handlers=dict.fromkeys((ApiError, TrtpipeError, HTTPException), _refuse)
        | dict.fromkeys((ClientLeft, ClientDisconnect), _close)
        | {Exception: _fail},
        lifespan=lambda _: backends.open(),
    )
    return Gate(app, backends)


async def _refuse(request: Request, fault: Exception) -> Response:
    match fault:
        case ApiError():
            error = fault
        case TrtpipeError():
            error = from_fault(fault)
        case HTTPException():  # of Starlette itself: no such path or method
            error = ApiError(fault.status_code, f"{request.method} {request.url.path}: {fault.detail}")
    request.state.facts["error"] = error.code
    return error.response()


async def _close(request: Request, fault: Exception) -> Response:
    return Response(status_code=CLOSED)


async def _fail(request: Request, fault: Exception) -> Response:
    return ApiError(500, "internal error", kind="server_error", code="internal_error").response()
