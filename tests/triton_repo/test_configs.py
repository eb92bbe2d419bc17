"""The model configs against the reviewed files in tests/golden, and against upstream's templates."""

from dataclasses import replace

import pytest

from served_engines import ENGINES, LOCAL, TENSORRT_LLM
from trtpipe.triton_repo import configs, contract, pbtxt
from trtpipe.triton_repo.engine_parameters import FIXED, LEFT_OUT, MUST_EXIST

MODELS = ["preprocessing", "tensorrt_llm", "postprocessing", "ensemble", "tensorrt_llm_bls"]
FOLDERS = {"vllm": "triton_repo", "tensorrt-llm": "triton_repo/tensorrt-llm"}


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("model", MODELS)
def test_config_is_the_reviewed_one(kind, model, golden):
    built = configs.build(ENGINES[kind])

    golden(f"{FOLDERS[kind]}/{model}.pbtxt", pbtxt.render(built[model]))


@pytest.mark.parametrize("kind", FOLDERS)
def test_no_placeholder_is_left(kind):
    assert not [text for text in map(pbtxt.render, configs.build(ENGINES[kind]).values()) if "${" in text]


def test_answers_leave_postprocessing_in_order():
    built = configs.build(LOCAL)

    assert built["postprocessing"].instance_group[0].count == 1
    assert not built["postprocessing"].HasField("dynamic_batching")


def test_only_the_engine_answers_more_than_once():
    assert [
        model.name for model in (contract.PREPROCESSING, contract.ENGINE, contract.POSTPROCESSING) if model.decoupled
    ] == ["tensorrt_llm"]


@pytest.mark.parametrize("key", MUST_EXIST)
def test_keys_without_which_the_backend_does_not_load_are_there(key):
    assert key in configs.build(TENSORRT_LLM)["tensorrt_llm"].parameters


def test_what_is_left_out_has_no_value_elsewhere():
    assert not LEFT_OUT.keys() & (FIXED.keys() | TENSORRT_LLM.parameters.texts().keys())


def test_limits_and_queue_come_from_the_engine():
    config = configs.build(TENSORRT_LLM)["tensorrt_llm"]

    assert config.max_batch_size == 64
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 256
    assert config.parameters["decoding_mode"].string_value == "top_k_top_p"


def test_a_wider_beam_is_decoded_by_beam_search():
    assert replace(TENSORRT_LLM.parameters, beam_width_max=2).texts()["decoding_mode"] == "beam_search"
