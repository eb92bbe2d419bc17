"""``client`` for asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, Unpack

from trtpipe.triton_repo import exchange, grpc_messages
from trtpipe.triton_repo.exchange import TIME_LIMIT_S, Model, Options, Piece, Prompt
from trtpipe.triton_repo.grpc_aio_route import GrpcAioRoute
from trtpipe.triton_repo.http_aio_route import HttpAioRoute


class AsyncClient:
    """As ``Client``; cancelling the task that waits cancels the request. To be made within the event loop."""

    def __init__(self, url: str, *, model: Model = "tensorrt_llm_bls", retry_s: float = 0.0) -> None:
        self.model = model
        self._retry_s = retry_s
        self._route = GrpcAioRoute(url) if url.startswith(grpc_messages.SCHEME) else HttpAioRoute(url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._route.close()

    async def is_ready(self) -> bool:
        """True where the server answers requests for the model and for the engine, which may be gone without it."""
        return await self._route.is_ready("tensorrt_llm") and await self._route.is_ready(self.model)

    async def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        request_id: str = "",
        time_limit_s: float = TIME_LIMIT_S,
        **options: Unpack[Options],
    ) -> str:
        """Return the whole answer. Raises NoServer, Refused (HTTP only), OutOfTime, ToolFailed."""
        inputs = exchange.inputs(prompt, max_tokens, options, stream=False)
        async with self._pieces(inputs, request_id, time_limit_s, stream=False) as pieces:
            return "".join([piece.text async for piece in pieces])

    @asynccontextmanager
    async def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        request_id: str = "",
        time_limit_s: float = TIME_LIMIT_S,
        **options: Unpack[Options],
    ) -> AsyncIterator[AsyncIterator[str]]:
        """Give the answer's texts as they come; leaving the block cancels what is not there yet."""
        inputs = exchange.inputs(prompt, max_tokens, options, stream=True)
        async with self._pieces(inputs, request_id, time_limit_s, stream=True) as pieces:
            yield (piece.text async for piece in pieces)

    @asynccontextmanager
    async def pieces(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        stream: bool = True,
        request_id: str = "",
        time_limit_s: float = TIME_LIMIT_S,
        **options: Unpack[Options],
    ) -> AsyncIterator[AsyncIterator[Piece]]:
        """As ``stream``, with the engine's counts of tokens beside the texts; a piece may be without text.

        ``stream``: False for the whole answer as one piece.
        """
        inputs = exchange.inputs(prompt, max_tokens, options, stream=stream, counted=True)
        async with self._pieces(inputs, request_id, time_limit_s, stream=stream) as pieces:
            yield pieces

    @asynccontextmanager
    async def _pieces(
        self, inputs: dict[str, Any], request_id: str, time_limit_s: float, *, stream: bool
    ) -> AsyncIterator[AsyncGenerator[Piece, None]]:
        pieces = self._route.pieces(
            self.model,
            inputs,
            request_id=request_id,
            stream=stream,
            time_limit_s=time_limit_s,
            retry_s=self._retry_s,
        )
        try:
            yield pieces
        finally:
            await pieces.aclose()
