"""The responses to one request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
import triton_python_backend_utils as pb_utils

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# All other tensors hold whole numbers.
FRACTIONS = frozenset({"output_log_probs", "cum_log_probs"})


class Reply:
    """Sends to one client; to be used by one thread only. After the final response nothing more is sent.

    ``request_id``: as the client gave it; empty where it gave none. ``arrived_s``: now, on the clock of
    ``time.monotonic``. ``unwanted``: somebody has asked for the end.
    """

    def __init__(self, sender: Any, request_id: str) -> None:
        self._sender = sender
        self.request_id = request_id
        self.arrived_s = time.monotonic()
        self.unwanted = False
        self._begun = False
        self._ended = False

    def send(self, ids: Sequence[int], facts: Mapping[str, Any]) -> None:
        """Send new token ids. ``facts``: further tensors by name, as lists without the batch dimension."""
        self._send(ids, facts, final=False)

    def finish(self, ids: Sequence[int], facts: Mapping[str, Any]) -> None:
        """Send the last ids, also where there are none: an end without tensors means a failure to the BLS model."""
        self._send(ids, facts, final=True)

    def break_off(self) -> None:
        """End an unwanted answer where it stands: with an error only where nothing has been sent."""
        if self._begun:
            self.finish([], {})
        else:
            self.fail("cancelled", pb_utils.TritonError.CANCELLED)

    def _send(self, ids: Sequence[int], facts: Mapping[str, Any], *, final: bool) -> None:
        """Send output_ids [1, 1, n], sequence_length [1, 1] and the facts, the batch dimension first."""
        self._begun = True
        values = {"output_ids": [list(ids)], "sequence_length": [len(ids)], **facts}
        tensors = [
            pb_utils.Tensor.from_dlpack(
                name, torch.tensor([value], dtype=torch.float32 if name in FRACTIONS else torch.int32)
            )
            for name, value in values.items()
        ]
        self._ended = final
        self._sender.send(pb_utils.InferenceResponse(tensors), flags=_flags(final))

    def fail(self, reason: str, code: int) -> None:
        """Send an error, which is the end.

        On the way to a BLS model, Triton 2.51 loses an error that comes after other responses, and the end with it
        if both are one response. An error that comes first must be one with the end, or the BLS model never unloads.
        """
        self._ended = True
        error = pb_utils.InferenceResponse(error=pb_utils.TritonError(reason, code))
        self._sender.send(error, flags=_flags(final=not self._begun))
        if self._begun:
            self._sender.send(flags=_flags(final=True))

    def is_cancelled(self) -> bool:
        # Triton crashes when it is asked about a request that has got its final response.
        return not self._ended and bool(self._sender.is_cancelled())


def _flags(final: bool) -> int:
    return int(pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL) if final else 0
