"""The preprocessing model: a text or a conversation becomes token ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from chat import ChatError, ChatTokenizer
from golden_ids import FIX, Golden, GoldenError, Surroundings
from parameters import BEAMS, RequestError, refuse_beams, refuse_unread
from prompt import encode, guide_bytes, word_lists
from request_name import in_log
from token_bytes import TokenBytes


class TritonPythonModel:
    """What Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config["parameters"].items()}
        place, date = Path(args["model_repository"]), parameters["template_date"]
        folder = (place / parameters["tokenizer_dir"]).resolve()
        # The config tells which of the two kinds of engine is behind it, as it tells the BLS model.
        self.local = "GUIDE_TYPE" in [tensor["name"] for tensor in config["input"]]
        self.tokenizer = ChatTokenizer.load(folder, date=date)
        self.table = TokenBytes(self.tokenizer.tokenizer)
        if parameters.get("golden_prompts"):
            self._require_golden((place / parameters["golden_prompts"]).resolve(), Surroundings.here(folder, date))

    def _require_golden(self, path: Path, here: Surroundings) -> None:
        """Let the model not load where it would make other ids than calibration did."""
        try:
            Golden.read(path).require(
                lambda prompt: encode(prompt.text_input, self.tokenizer), self.tokenizer.tokenizer.id_to_token, here
            )
        except GoldenError as fault:
            raise pb_utils.TritonModelException(f"{fault}. {FIX}") from None

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._respond(request) for request in requests]

    def _respond(self, request: Any) -> Any:
        try:
            refuse_unread(request)
            tensors = self._tensors(request)
        except (RequestError, ChatError) as fault:
            # Not why: the reason may hold what the client has written.
            pb_utils.Logger.log_info(f"{in_log(request.request_id())} refused")
            error = pb_utils.TritonError(str(fault), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=error)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, np.asarray([values], dtype=np.int32)) for name, values in tensors.items()]
        )

    def _tensors(self, request: Any) -> dict[str, Any]:
        """Return the outputs without their batch dimension. Raises RequestError or ChatError."""
        refuse_beams(_number(request, "BEAM_WIDTH", default=BEAMS))
        ids = encode(_texts(request, "QUERY")[0], self.tokenizer)
        return {
            "INPUT_ID": ids,
            "REQUEST_INPUT_LEN": [len(ids)],
            "BAD_WORDS_IDS": word_lists(_texts(request, "BAD_WORDS_DICT"), self.table),
            "STOP_WORDS_IDS": word_lists(_texts(request, "STOP_WORDS_DICT"), self.table, self._other_ends(request)),
            "GUIDE_BYTES": guide_bytes(_text(request, "GUIDE_TYPE"), _text(request, "GUIDE")),
            "REQUEST_OUTPUT_LEN": [_number(request, "REQUEST_OUTPUT_LEN", default=0)],
            "OUT_END_ID": [_number(request, "END_ID", default=self.tokenizer.end_id)],
            "OUT_PAD_ID": [_number(request, "PAD_ID", default=self.tokenizer.pad_id)],
        }

    def _other_ends(self, request: Any) -> list[int]:
        """Return the model's further ending tokens: TensorRT-LLM takes one, and the others as stop words only.

        None where the client says what ends the answer, and none for the local engine: it knows them itself, and finds
        stop words in the text, where a token's name may also be spelled out.
        """
        if self.local or pb_utils.get_input_tensor_by_name(request, "END_ID") is not None:
            return []
        return sorted(self.tokenizer.eos_ids - {self.tokenizer.end_id})


def _texts(request: Any, name: str) -> list[str]:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    values = [] if tensor is None else tensor.as_numpy().flatten().tolist()
    try:
        return [value.decode("utf-8") for value in values]
    except UnicodeDecodeError as fault:
        raise RequestError(f"{name} is not UTF-8: {fault.reason} at byte {fault.start}") from None


def _text(request: Any, name: str) -> str:
    return "".join(_texts(request, name)[:1])


def _number(request: Any, name: str, *, default: int) -> int:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else int(tensor.as_numpy().flatten()[0])
