"""Requests over gRPC: always the call that Triton calls a stream, which ends after one response for a unary one.

Triton's plain call serves only models that answer exactly once. Messages and stub are tritonclient's.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import grpc
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from trtpipe.triton_repo import grpc_messages
from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, NoServer, Piece

READY = grpc.ChannelConnectivity.READY


class GrpcRoute:
    """A channel to one server, kept for further requests."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._channel = grpc.insecure_channel(url.removeprefix(grpc_messages.SCHEME), options=grpc_messages.OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def pieces(
        self, model: str, inputs: dict[str, Any], *, request_id: str, stream: bool, time_limit_s: float, retry_s: float
    ) -> Generator[Piece, None, None]:
        """Yield the pieces of the answer as they come; a closed iterator cancels the request.

        ``retry_s``: so long the channel may try to connect again. Raises NoServer, OutOfTime, ToolFailed.
        """
        where = f"{self._url}/{model}"
        self._connect(where, retry_s)
        stub = GRPCInferenceServiceStub(self._channel)
        message = grpc_messages.request(model, inputs, request_id)
        call = stub.ModelStreamInfer(iter([message]), timeout=time_limit_s)
        try:
            for response in call:
                if response.error_message:
                    _read_to_its_end(call)
                yield grpc_messages.piece(response, where)
        except grpc.RpcError as fault:
            raise grpc_messages.failure(fault, where, time_limit_s) from None
        finally:
            call.cancel()

    def _connect(self, where: str, retry_s: float) -> None:
        """Wait for the connection before anything is sent, so that nobody has to guess what a lost one has lost."""
        states: SimpleQueue[grpc.ChannelConnectivity] = SimpleQueue()
        retry_until = time.monotonic() + retry_s
        deadline = retry_until + CONNECT_LIMIT_S
        self._channel.subscribe(states.put, try_to_connect=True)
        try:
            while (state := states.get(timeout=max(deadline - time.monotonic(), 0))) is not READY:
                if grpc_messages.is_failed(state):
                    deadline = retry_until
        except Empty:
            raise NoServer(where) from None
        finally:
            self._channel.unsubscribe(states.put)


def _read_to_its_end(call: Iterator[Any]) -> None:
    """Wait until the server has ended a refused request.

    Triton 2.51 keeps a request for ever whose client cancels while its last response is on the way; the model is
    then never unloaded, and a stop lasts until Triton's exit timeout.
    """
    with suppress(grpc.RpcError):  # the refusal says more than how the call ended
        for _ in call:
            pass
