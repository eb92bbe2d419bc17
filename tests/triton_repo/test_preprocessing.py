"""The preprocessing model's own part, with Triton's requests and tensors stood in for."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trtpipe.triton_repo import contract, repository


@dataclass
class Request:
    """What Triton hands over. ``tensors``: texts and numbers by name."""

    tensors: dict[str, Any]

    def parameters(self) -> str:
        return ""

    def timeout(self) -> int:
        return 0

    def request_id(self) -> str:
        return "order-17"


@pytest.fixture
def told():
    """What the model writes into Triton's log."""
    return []


@pytest.fixture
def model(monkeypatch, tmp_path, byte_level, told):
    """Return a function that starts the model for a kind of engine, and answers one request with its outputs."""
    byte_level.tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [256, 65, 9000]}))

    def tensor(request, name):
        values = request.tensors.get(name)
        if values is None:
            return None
        array = np.array([[value.encode() if isinstance(value, str) else value for value in values]])
        return SimpleNamespace(as_numpy=lambda: array)

    class TritonError(str):
        INVALID_ARG = "invalid"

        def __new__(cls, reason, code):
            return super().__new__(cls, f"{code}: {reason}")

    backend = SimpleNamespace(
        get_input_tensor_by_name=tensor,
        Tensor=lambda name, values: (name, values[0].tolist()),
        TritonError=TritonError,
        Logger=SimpleNamespace(log_info=told.append),
        InferenceResponse=lambda tensors=None, error=None: error or dict(tensors),
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    spec = importlib.util.spec_from_file_location("served", repository.MODELS / "preprocessing" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def answer(contract_of, request):
        started = module.TritonPythonModel()
        config = {
            "input": [{"name": row.name} for row in contract_of.inputs],
            "parameters": {
                "tokenizer_dir": {"string_value": str(tmp_path)},
                "template_date": {"string_value": "2026-01-01"},
            },
        }
        started.initialize({"model_config": json.dumps(config), "model_repository": str(tmp_path)})
        return started.execute([request])[0]

    return answer


def asked(**tensors: Any) -> Request:
    return Request({"QUERY": ["hi"], "REQUEST_OUTPUT_LEN": [4], **tensors})


def test_further_ending_tokens_are_stop_words_of_tensorrt_llm_alone(model):
    """The local engine knows them, and would find their names in the text, where they may be spelled out."""
    ends = {"vllm": contract.GUIDED_PREPROCESSING, "tensorrt-llm": contract.PREPROCESSING}
    found = {kind: model(rows, asked(STOP_WORDS_DICT=["a"]))["STOP_WORDS_IDS"] for kind, rows in ends.items()}
    (spelled,) = found["vllm"][0]

    assert found == {"vllm": [[spelled], [1]], "tensorrt-llm": [[spelled, 65, 9000], [1, 2, 3]]}
    assert model(contract.PREPROCESSING, asked(END_ID=[7]))["STOP_WORDS_IDS"] == [[], []]


def test_a_refusal_is_in_the_log_by_its_id_and_without_the_clients_words(model, told):
    answer = model(contract.PREPROCESSING, asked(QUERY=['{"messages": [], "my secret": 1}']))

    assert answer.startswith("invalid: the JSON document has unknown keys: my secret")
    assert told == ["request order-17 refused"]
