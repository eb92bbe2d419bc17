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


def test_limits_come_from_the_engine():
    config = configs.build(TENSORRT_LLM)["tensorrt_llm"]

    assert config.max_batch_size == 64
    assert config.parameters["decoding_mode"].string_value == "top_k_top_p"


@pytest.mark.parametrize("kind", ENGINES)
def test_instances_and_queue_come_from_the_target(kind):
    models = type(ENGINES[kind].models)(preprocessing_instances=3, bls_instances=4, queue_requests_max=5)
    if kind == "tensorrt-llm":
        models = models.model_copy(update={"queue_delay_us": 600})
    built = configs.build(replace(ENGINES[kind], models=models))

    counts = {name: config.instance_group[0].count for name, config in built.items() if config.instance_group}
    assert counts == {"preprocessing": 3, "tensorrt_llm": 1, "postprocessing": 1, "tensorrt_llm_bls": 4}
    if kind == "vllm":
        assert built["tensorrt_llm"].parameters["queue_requests_max"].string_value == "5"
    else:
        batching = built["tensorrt_llm"].dynamic_batching
        assert batching.default_queue_policy.max_queue_size == 5
        assert batching.max_queue_delay_microseconds == 600


def test_a_wider_beam_is_decoded_by_beam_search():
    assert replace(TENSORRT_LLM.parameters, beam_width_max=2).texts()["decoding_mode"] == "beam_search"
