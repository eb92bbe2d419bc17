"""``grpc_route`` for asyncio. Cancelling the task, or closing the iterator, cancels the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from trtpipe.triton_repo import grpc_messages
from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, NoServer, Piece


class GrpcAioRoute:
    """A channel to one server, kept for further requests. To be made and used within one event loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        address = url.removeprefix(grpc_messages.SCHEME)
        self._channel = grpc.aio.insecure_channel(address, options=grpc_messages.OPTIONS)

    async def close(self) -> None:
        await self._channel.close()

    async def is_ready(self, model: str) -> bool:
        stub = GRPCInferenceServiceStub(self._channel)
        try:
            answer = await stub.ModelReady(messages.ModelReadyRequest(name=model), timeout=CONNECT_LIMIT_S)
        except grpc.RpcError:
            return False
        return bool(answer.ready)

    async def pieces(
        self, model: str, inputs: dict[str, Any], *, request_id: str, stream: bool, time_limit_s: float, retry_s: float
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of the answer as they come. Raises NoServer, OutOfTime, ToolFailed."""
        where = f"{self._url}/{model}"
        await self._connect(where, retry_s)
        stub = GRPCInferenceServiceStub(self._channel)
        message = grpc_messages.request(model, inputs, request_id)
        call = stub.ModelStreamInfer(iter([message]), timeout=time_limit_s)
        try:
            async for response in call:
                if response.error_message:
                    with suppress(grpc.RpcError):  # as in grpc_route: a refused request is read to its end
                        async for _ in call:
                            pass
                yield grpc_messages.piece(response, where)
        except grpc.RpcError as fault:
            raise grpc_messages.failure(fault, where, time_limit_s) from None
        finally:
            call.cancel()

    async def _connect(self, where: str, retry_s: float) -> None:
        retry_until = asyncio.get_running_loop().time() + retry_s
        try:
            async with asyncio.timeout_at(retry_until + CONNECT_LIMIT_S) as limit:
                while (state := self._channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
                    if grpc_messages.is_failed(state):
                        limit.reschedule(retry_until)
                    await self._channel.wait_for_state_change(state)
        except TimeoutError:
            raise NoServer(where) from None
