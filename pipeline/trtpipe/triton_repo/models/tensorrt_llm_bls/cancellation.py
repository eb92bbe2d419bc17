"""Passes cancellations on to the engine.

Triton tells only the model that the client has asked. What that model has asked of others runs on, and this Triton
gives it no way to end such a call. The engine, as TensorRT-LLM's, ends a request when another one arrives that has
the same id and the input ``stop``.
"""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils
from contract import ENGINE

if TYPE_CHECKING:
    from collections.abc import Iterator

# As TensorRT-LLM's cancellation_check_period_ms.
PERIOD_S = 0.1


class Watch:
    """Looks at all requests in the engine from one thread of its own."""

    def __init__(self) -> None:
        self._senders: dict[str, Any] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="cancellations", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, sender: Any) -> Iterator[str]:
        """Give the id to use towards the engine: one of our own, because clients may choose equal ones."""
        engine_id = str(uuid.uuid4())
        self._senders[engine_id] = sender
        try:
            yield engine_id
        finally:
            del self._senders[engine_id]

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(PERIOD_S):
            for engine_id, sender in dict(self._senders).items():
                # Asked again until the request has ended: the first time it may not have reached the engine yet.
                if sender.is_cancelled():
                    _stop(engine_id)


def _stop(engine_id: str) -> None:
    """End a request of the engine; the lengths are only there because its config requires them."""
    tensors = [
        pb_utils.Tensor("input_lengths", np.array([[0]], dtype=np.int32)),
        pb_utils.Tensor("request_output_len", np.array([[0]], dtype=np.int32)),
        pb_utils.Tensor("stop", np.array([[True]])),
    ]
    request = pb_utils.InferenceRequest(
        request_id=engine_id,
        model_name=ENGINE.name,
        inputs=tensors,
        requested_output_names=[tensor.name for tensor in ENGINE.outputs],
    )
    for response in request.exec(decoupled=True):
        if response.has_error():
            pb_utils.Logger.log_error(f"the engine does not stop a request: {response.error().message()}")
