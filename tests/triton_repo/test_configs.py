"""The model configs against the reviewed files in tests/golden."""

import pytest

from trtpipe.triton_repo import configs, contract, pbtxt


@pytest.mark.parametrize("model", ["preprocessing", "tensorrt_llm", "postprocessing", "ensemble", "tensorrt_llm_bls"])
def test_config_is_the_reviewed_one(model, golden):
    built = configs.build(configs.LocalEngine("/environment", "2026-01-01"))

    golden(f"triton_repo/{model}.pbtxt", pbtxt.render(built[model]))


def test_answers_leave_postprocessing_in_order():
    built = configs.build(configs.LocalEngine("/environment", "2026-01-01"))

    assert built["postprocessing"].instance_group[0].count == 1
    assert not built["postprocessing"].HasField("dynamic_batching")


def test_only_the_engine_answers_more_than_once():
    assert [
        model.name for model in (contract.PREPROCESSING, contract.ENGINE, contract.POSTPROCESSING) if model.decoupled
    ] == ["tensorrt_llm"]
