"""The BLS model: what the ensemble does, driven from here, so that a client's cancellation can reach the engine."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import triton_python_backend_utils as pb_utils
from cancellation import Watch
from contract import BLS, STEPS
from parameters import RequestError, refuse_unknown
from steps import StepError, Tensors, call, copy, stream

# Each request holds a thread, which only waits; more than this wait their turn.
REQUESTS_MAX = 256


class TritonPythonModel:
    """What Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        self.threads = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="request")
        self.watch = Watch()

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            sender = request.get_response_sender()
            try:
                refuse_unknown(json.loads(request.parameters() or "{}"))
                tensors = copy(request, [tensor.name for tensor in BLS.inputs])
            except Exception as fault:  # a request that gets no answer would hang its client for ever
                refused = isinstance(fault, RequestError)
                _fail(sender, str(fault) if refused else repr(fault), pb_utils.TritonError.INVALID_ARG)
            else:
                self.threads.submit(self._serve, sender, tensors)

    def finalize(self) -> None:
        self.threads.shutdown(cancel_futures=True)
        self.watch.end()

    def _serve(self, sender: Any, tensors: Tensors) -> None:
        """Answer one request. Whatever happens, the last response is marked as final."""
        try:
            self._answer(sender, tensors)
        except StepError as fault:
            _fail(sender, str(fault), fault.code)
        except Exception as fault:
            pb_utils.Logger.log_error(f"request failed: {fault!r}")
            _fail(sender, repr(fault), pb_utils.TritonError.INTERNAL)
        else:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _answer(self, sender: Any, tensors: Tensors) -> None:
        preprocessing, engine, postprocessing = STEPS
        tensors |= call(preprocessing, tensors)
        with self.watch.over(sender) as engine_id:
            for produced in stream(engine, tensors, engine_id):
                made = call(postprocessing, produced)
                outputs = [pb_utils.Tensor(tensor.name, made[tensor.name]) for tensor in BLS.outputs]
                sender.send(pb_utils.InferenceResponse(outputs))


def _fail(sender: Any, reason: str, code: int) -> None:
    error = pb_utils.TritonError(reason, code)
    sender.send(pb_utils.InferenceResponse(error=error), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
