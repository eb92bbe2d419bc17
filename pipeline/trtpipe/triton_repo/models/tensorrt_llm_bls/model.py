"""The BLS model: what the ensemble does, driven from here, so that a client's cancellation can reach the engine.

The engine is always asked for a stream: whether the client is still there is looked at before it is asked, and with
each of its responses. So a request that waits in the engine's own queue is computed up to its first token after its
client has left: Triton's call gives nothing else to wait on, and a second thread is no way out (``cancellation``).
"""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from answer import Answer
from cancellation import stop
from chat import ChatTokenizer
from contract import BLS, GUIDED_BLS, GUIDED_STEPS, GUIDES, STEPS
from counts import Counts, ask
from log_probs import LogProbs
from parameters import RequestError, refuse_unread
from request_name import in_log
from steps import StepError, Tensors, answer_of, call, copy, ids_of, stream
from token_bytes import TokenBytes

# Each request holds a thread, which only waits; more than this wait their turn.
REQUESTS_MAX = 256


class TritonPythonModel:
    """What Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        folder = Path(args["model_repository"]) / config["parameters"]["tokenizer_dir"]["string_value"]
        # The config tells which of the two kinds of engine is behind it.
        guided = GUIDES["GUIDE"] in [tensor["name"] for tensor in config["input"]]
        self.inputs = [tensor.name for tensor in (GUIDED_BLS if guided else BLS).inputs]
        self.steps = GUIDED_STEPS if guided else STEPS
        tokenizer = ChatTokenizer.load(folder.resolve())
        self.table = TokenBytes(tokenizer.tokenizer)
        # The local engine has dropped the space in front of the text already.
        self.opens_text = tokenizer.has_template and not guided
        self.guided = guided
        self.threads = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="request")

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            sender = request.get_response_sender()
            try:
                refuse_unread(request)
                tensors = copy(request, self.inputs)
            except Exception as fault:  # a request that gets no answer would hang its client for ever
                refused = isinstance(fault, RequestError)
                pb_utils.Logger.log_info(f"{in_log(request.request_id())} refused")
                _fail(sender, str(fault) if refused else repr(fault), pb_utils.TritonError.INVALID_ARG)
            else:
                # Made unique, because clients may choose equal ids.
                engine_id = "-".join([*filter(None, [request.request_id()]), str(uuid.uuid4())])
                self.threads.submit(self._serve, sender, tensors, engine_id)

    def finalize(self) -> None:
        self.threads.shutdown(cancel_futures=True)

    def _serve(self, sender: Any, tensors: Tensors, engine_id: str) -> None:
        """Answer one request. Whatever happens, the last response is marked as final."""
        try:
            self._answer(sender, tensors, engine_id)
        except StepError as fault:
            _fail(sender, str(fault), fault.code)
        except Exception as fault:
            pb_utils.Logger.log_error(f"{in_log(engine_id)} failed: {fault!r}")
            _fail(sender, repr(fault), pb_utils.TritonError.INTERNAL)
        else:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _answer(self, sender: Any, tensors: Tensors, engine_id: str) -> None:
        preprocessing, engine, postprocessing = self.steps
        tensors = ask(tensors) | call(preprocessing, tensors)
        if sender.is_cancelled():  # while it waited for a thread
            return
        in_pieces = bool(tensors.get("stream", False))
        tensors["stream"] = np.array([[True]])
        stop_words, tokens_min = _texts(tensors, "stop_words"), _number(tensors, "min_tokens", 0)
        answer = Answer(self.table, stop_words, tokens_min, opens_text=self.opens_text)
        counts, log_probs = Counts(), LogProbs(repeated=not self.guided)
        ids: list[int] = []
        sent = ended = cancelled = False
        for produced in stream(engine, tensors, engine_id):
            if ended:
                continue  # a stopped answer is read to its end, because Triton keeps what nobody has read
            counts.add(produced)
            log_probs.add(produced)
            ids += answer.add(ids_of(produced))
            if in_pieces and ids:
                _send(sender, call(postprocessing, answer_of(ids)) | counts.take() | log_probs.take())
                ids, sent = [], True
            cancelled = sender.is_cancelled()
            if ended := cancelled or answer.stopped:
                stop(engine_id)
        ids += answer.finish()
        if not cancelled and (ids or not sent or counts.is_owed() or log_probs.is_owed()):
            _send(sender, call(postprocessing, answer_of(ids)) | counts.take() | log_probs.take())


def _texts(tensors: Tensors, name: str) -> list[str]:
    """Return texts that preprocessing has found to be UTF-8; none where the client gave none."""
    return [text.decode() for text in tensors[name].flatten()] if name in tensors else []


def _number(tensors: Tensors, name: str, default: int) -> int:
    return int(tensors[name].flatten()[0]) if name in tensors else default


def _send(sender: Any, tensors: Tensors) -> None:
    outputs = [pb_utils.Tensor(row.name, tensors[row.name]) for row in BLS.outputs if row.name in tensors]
    sender.send(pb_utils.InferenceResponse(outputs))


def _fail(sender: Any, reason: str, code: int) -> None:
    error = pb_utils.TritonError(reason, code)
    sender.send(pb_utils.InferenceResponse(error=error), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
