"""The engine model: Triton's side of it. ``execute`` only hands requests over; ``engine`` answers them.

This file runs in the environment that holds vLLM. Its numpy is newer than Triton's Python backend, which then can't
pass numpy arrays: tensors travel by DLPack, and there are no text tensors.
"""

from __future__ import annotations

import json
import locale
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton_python_backend_utils as pb_utils
from generation import Values, is_stop, read
from parameters import RequestError, refuse_unread

if TYPE_CHECKING:
    from reply import Reply


class TritonPythonModel:
    """What Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {name: entry["string_value"] for name, entry in config["parameters"].items()}
        folder = (Path(args["model_repository"]) / parameters["gpt_model_path"]).resolve()
        started_with = json.loads((folder / "engine.json").read_text(encoding="utf-8"))
        # The backend's Python ignores the locale of its environment; vLLM reads files as UTF-8.
        locale.setlocale(locale.LC_ALL, "C.UTF-8")
        os.environ.update(started_with["environment"])
        # Imported only now, because torch and vLLM read the environment as they are imported.
        from engine import Engine  # noqa: PLC0415

        self.input_names = [tensor["name"] for tensor in config["input"]]
        self.engine = Engine(
            folder,
            started_with["arguments"],
            args["model_name"],
            args["model_version"],
            queue_requests_max=int(parameters["queue_requests_max"]),
        )

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            reply = self.engine.reply_to(request)
            try:
                self._take(reply, self._values(request))
            except RequestError as fault:
                self.engine.refuse(reply, str(fault))
            except Exception as fault:  # a request that gets no answer would hang its client for ever
                pb_utils.Logger.log_error(f"request not readable: {fault!r}")
                self.engine.refuse(reply, f"the request can't be read: {fault}")

    def finalize(self) -> None:
        self.engine.shutdown()

    def _take(self, reply: Reply, values: Values) -> None:
        if is_stop(values, reply.request_id):
            self.engine.stop(reply)
        else:
            self.engine.submit(reply, read(values, self.engine.limits))

    def _values(self, request: Any) -> Values:
        """Copy the request's tensors: they are gone once ``execute`` has returned."""
        refuse_unread(request)
        tensors = {name: pb_utils.get_input_tensor_by_name(request, name) for name in self.input_names}
        return {name: self.engine.to_list(tensor) for name, tensor in tensors.items() if tensor is not None}
