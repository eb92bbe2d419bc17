"""The postprocessing model: token ids become text. It keeps no state: the engine cuts answers where that is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from chat import ChatTokenizer
from token_bytes import TokenBytes


class TritonPythonModel:
    """What Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        folder = Path(args["model_repository"]) / parameters["tokenizer_dir"]["string_value"]
        self.table = TokenBytes(ChatTokenizer.load(folder.resolve()).tokenizer)

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._respond(request) for request in requests]

    def _respond(self, request: Any) -> Any:
        """Decode TOKENS_BATCH [1, beams, n], each beam as far as SEQUENCE_LENGTH [1, beams] says."""
        beams = pb_utils.get_input_tensor_by_name(request, "TOKENS_BATCH").as_numpy()[0]
        lengths = pb_utils.get_input_tensor_by_name(request, "SEQUENCE_LENGTH").as_numpy()[0]
        texts = [self.table.text(ids[:length].tolist()) for ids, length in zip(beams, lengths, strict=True)]
        output = np.array([[text.encode() for text in texts]], dtype=np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", output)])
