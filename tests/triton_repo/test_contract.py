"""The tables agree with themselves."""

from dataclasses import replace

import pytest

from trtpipe.triton_repo import contract

MODELS = (
    *(contract.PREPROCESSING, contract.ENGINE, contract.POSTPROCESSING, contract.ENSEMBLE, contract.BLS),
    *(contract.GUIDED_PREPROCESSING, contract.GUIDED_ENGINE, contract.GUIDED_ENSEMBLE, contract.GUIDED_BLS),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_names_are_given_once(model):
    for tensors in (model.inputs, model.outputs):
        names = [tensor.name for tensor in tensors]
        assert len(names) == len(set(names))


def test_every_engine_option_can_be_asked_for_through_the_ensemble():
    step = next(step for step in contract.STEPS if step.model == "tensorrt_llm")

    # a request is stopped by its id, which no tensor carries
    assert set(step.inputs) == {tensor.name for tensor in contract.ENGINE.inputs} - {"stop"}


def test_what_the_ensemble_passes_through_keeps_type_and_length():
    engine = {tensor.name: tensor for tensor in contract.ENGINE.inputs}
    ensemble = {tensor.name: tensor for tensor in contract.ENSEMBLE.inputs}
    step = next(step for step in contract.STEPS if step.model == "tensorrt_llm")
    passed = [(engine[name], ensemble[source]) for name, source in step.inputs.items() if source in ensemble]

    assert len(passed) >= 10
    for inner, outer in passed:
        assert replace(inner, name=outer.name, flat=outer.flat) == outer


def test_the_bls_model_has_the_tensors_of_the_ensemble_and_the_ids_of_the_log_probabilities():
    inputs = tuple(replace(row, flat=False) for row in contract.BLS.inputs)
    outputs = contract.BLS.outputs[:-1]

    assert replace(contract.BLS, name="ensemble", inputs=inputs, outputs=outputs, decoupled=False) == contract.ENSEMBLE
    assert contract.BLS.outputs[-1] == contract.LOG_PROB_IDS


def test_the_bls_model_can_tell_the_steps_apart():
    assert [step.model for step in contract.STEPS] == ["preprocessing", "tensorrt_llm", "postprocessing"]
