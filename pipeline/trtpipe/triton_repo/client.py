"""Ask a served model over HTTP or gRPC, in one piece or as a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, Unpack

from trtpipe.triton_repo import exchange, grpc_messages
from trtpipe.triton_repo.exchange import TIME_LIMIT_S, Model, Options, Piece, Prompt
from trtpipe.triton_repo.grpc_route import GrpcRoute
from trtpipe.triton_repo.http_route import HttpRoute


class Client:
    """Connections to one server.

    ``url``: as ``http://host:port`` or ``grpc://host:port``. ``model``: only ``tensorrt_llm_bls`` passes a
    cancellation on to the engine. ``retry_s``: so long a refused connection is tried again; a request that may have
    been sent never is. Threads may share a client.
    """

    def __init__(self, url: str, *, model: Model = "tensorrt_llm_bls", retry_s: float = 0.0) -> None:
        self.model = model
        self._retry_s = retry_s
        self._route = GrpcRoute(url) if url.startswith(grpc_messages.SCHEME) else HttpRoute(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._route.close()

    def generate(
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
        return "".join(piece.text for piece in self._pieces(inputs, request_id, time_limit_s, stream=False))

    @contextmanager
    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        request_id: str = "",
        time_limit_s: float = TIME_LIMIT_S,
        **options: Unpack[Options],
    ) -> Iterator[Iterator[str]]:
        """Give the answer's texts as they come; leaving the block cancels what is not there yet.

        Raises within the block: NoServer, Refused (HTTP only), OutOfTime, ToolFailed.
        """
        inputs = exchange.inputs(prompt, max_tokens, options, stream=True)
        pieces = self._pieces(inputs, request_id, time_limit_s, stream=True)
        try:
            yield (piece.text for piece in pieces)
        finally:
            pieces.close()

    @contextmanager
    def pieces(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        stream: bool = True,
        request_id: str = "",
        time_limit_s: float = TIME_LIMIT_S,
        **options: Unpack[Options],
    ) -> Iterator[Iterator[Piece]]:
        """As ``stream``, with the engine's counts of tokens beside the texts; a piece may be without text.

        ``stream``: False for the whole answer as one piece.
        """
        inputs = exchange.inputs(prompt, max_tokens, options, stream=stream, counted=True)
        pieces = self._pieces(inputs, request_id, time_limit_s, stream=stream)
        try:
            yield pieces
        finally:
            pieces.close()

    def _pieces(
        self, inputs: dict[str, Any], request_id: str, time_limit_s: float, *, stream: bool
    ) -> Generator[Piece, None, None]:
        return self._route.pieces(
            self.model,
            inputs,
            request_id=request_id,
            stream=stream,
            time_limit_s=time_limit_s,
            retry_s=self._retry_s,
        )


@dataclass(frozen=True)
class Answer:
    """``chunks``: non-empty texts that arrived, one for a unary request; ``first_chunk_s``: time to the first."""

    text: str
    chunks: int
    first_chunk_s: float
    seconds: float


def ask(
    url: str,
    prompt: Prompt,
    *,
    max_tokens: int,
    model: Model = "ensemble",
    stream: bool = False,
    options: Options | dict[str, Any] | None = None,
    on_chunk: Callable[[str], None] = lambda text: None,
    time_limit_s: float = TIME_LIMIT_S,
) -> Answer:
    """Ask once, on a connection of its own, and measure.

    ``options``: further inputs of the model, also unknown ones. ``on_chunk`` gets each piece of text as it comes.
    Raises as ``Client.generate`` does.
    """
    inputs = exchange.inputs(prompt, max_tokens, options or {}, stream=stream)
    started = time.monotonic()
    arrivals: list[float] = []
    texts: list[str] = []
    with Client(url, model=model) as client:
        for piece in client._pieces(inputs, "", time_limit_s, stream=stream):
            if piece.text:
                arrivals.append(time.monotonic() - started)
                texts.append(piece.text)
                on_chunk(piece.text)
    seconds = time.monotonic() - started
    return Answer("".join(texts), len(texts), arrivals[0] if arrivals else seconds, seconds)
