"""The responses to one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton_python_backend_utils as pb_utils

if TYPE_CHECKING:
    from collections.abc import Sequence


class Reply:
    """Sends to one client; to be used by one thread only. After the final response nothing more is sent.

    ``request_id``: as the client gave it; empty where it gave none.
    """

    def __init__(self, sender: Any, request_id: str) -> None:
        self._sender = sender
        self.request_id = request_id
        self._begun = False

    def send(self, ids: Sequence[int]) -> None:
        """Send new token ids."""
        self._send(ids, final=False)

    def finish(self, ids: Sequence[int]) -> None:
        """Send the last ids. Where nothing new has come after the last response, only the end is sent."""
        if ids or not self._begun:
            self._send(ids, final=True)
        else:
            self._sender.send(flags=_flags(final=True))

    def _send(self, ids: Sequence[int], *, final: bool) -> None:
        """Send output_ids [1, 1, n] and sequence_length [1, 1], the batch dimension first."""
        self._begun = True
        output_ids = torch.tensor([[list(ids)]], dtype=torch.int32)
        sequence_length = torch.tensor([[len(ids)]], dtype=torch.int32)
        tensors = [
            pb_utils.Tensor.from_dlpack("output_ids", output_ids),
            pb_utils.Tensor.from_dlpack("sequence_length", sequence_length),
        ]
        self._sender.send(pb_utils.InferenceResponse(tensors), flags=_flags(final))

    def fail(self, reason: str, code: int) -> None:
        """Send an error as the final response."""
        error = pb_utils.TritonError(reason, code)
        self._sender.send(pb_utils.InferenceResponse(error=error), flags=_flags(final=True))

    def is_cancelled(self) -> bool:
        return bool(self._sender.is_cancelled())


def _flags(final: bool) -> int:
    return int(pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL) if final else 0
