"""Passes a cancellation on to the engine.

Triton tells only the model that the client has asked. What that model has asked of others runs on, and Triton 2.51
gives it no way to end such a call. The engine, as TensorRT-LLM's, ends a request when another one arrives that has
the same id and the input ``stop``.
"""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils
from contract import ENGINE


def stop(engine_id: str) -> None:
    """End a request of the engine; the lengths are only there because its config requires them.

    To be called from the thread that reads the request's responses: with a second thread that watched for
    cancellations, the model's process broke down (objects of numpy and of Triton damaged) within twenty of them.
    """
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
