"""Calls to the other models, wired as the ensemble's steps are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contract import Step

# By the names that the ensemble gives them; the batch dimension comes first.
Tensors = dict[str, np.ndarray[Any, Any]]


class StepError(Exception):
    """A model answered with an error: its words, and Triton's code for it."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


def copy(request: Any, names: Sequence[str]) -> Tensors:
    """Copy those inputs of a request that are given: they are gone once ``execute`` has returned."""
    tensors = {name: pb_utils.get_input_tensor_by_name(request, name) for name in names}
    return {name: tensor.as_numpy().copy() for name, tensor in tensors.items() if tensor is not None}


def call(step: Step, tensors: Tensors) -> Tensors:
    """Return what a model answers. Raises StepError."""
    return _outputs(step, _request(step, tensors, "").exec())


def stream(step: Step, tensors: Tensors, request_id: str) -> Iterator[Tensors]:
    """Yield what a model answers as it comes; the engine knows the request by ``request_id``. Raises StepError."""
    for response in _request(step, tensors, request_id).exec(decoupled=True):
        if not response.has_error() and not response.output_tensors():
            # The engine ends an answer with tensors; an error after the first response gets lost on its way here.
            raise StepError("the engine failed within the answer; see the server's log", pb_utils.TritonError.INTERNAL)
        yield _outputs(step, response)


def ids_of(answer: Tensors) -> list[int]:
    """Return the ids of one response of the engine: [1, 1, n], as far as its length [1, 1] says."""
    ids: list[int] = answer["_TOKENS_BATCH"][0, 0, : answer["_SEQUENCE_LENGTH"][0, 0]].tolist()
    return ids


def answer_of(ids: Sequence[int]) -> Tensors:
    """Return ids as a response of the engine."""
    return {
        "_TOKENS_BATCH": np.array([[list(ids)]], dtype=np.int32),
        "_SEQUENCE_LENGTH": np.array([[len(ids)]], dtype=np.int32),
    }


def _request(step: Step, tensors: Tensors, request_id: str) -> Any:
    return pb_utils.InferenceRequest(
        request_id=request_id,
        model_name=step.model,
        inputs=[pb_utils.Tensor(name, tensors[source]) for name, source in step.inputs.items() if source in tensors],
        requested_output_names=list(step.outputs),
    )


def _outputs(step: Step, response: Any) -> Tensors:
    if response.has_error():
        raise StepError(response.error().message(), response.error().code())
    return {step.outputs[tensor.name()]: tensor.as_numpy() for tensor in response.output_tensors()}
