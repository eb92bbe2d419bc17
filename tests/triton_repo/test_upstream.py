"""The contract and the generated configs against the templates of TensorRT-LLM 1.2.1."""

from dataclasses import replace

import pytest

import upstream_differences as known
from served_engines import TENSORRT_LLM
from trtpipe.triton_repo import configs, contract, upstream
from trtpipe.triton_repo.engine_parameters import LEFT_OUT

SERVED = (
    *(contract.PREPROCESSING, contract.ENGINE, contract.POSTPROCESSING, contract.ENSEMBLE, contract.BLS),
    *(contract.GUIDED_ENSEMBLE, contract.GUIDED_BLS),
)
TEMPLATES = {model.name: model for model in upstream.MODELS}


def test_the_tables_hold_as_many_tensors_as_the_templates():
    counts = {model.name: (len(model.inputs), len(model.outputs)) for model in upstream.MODELS}

    assert counts == {
        "preprocessing": (14, 20),
        "tensorrt_llm": (62, 21),
        "postprocessing": (2, 1),
        "ensemble": (36, 19),
        "tensorrt_llm_bls": (42, 19),
    }


@pytest.mark.parametrize("served", SERVED, ids=lambda model: model.name)
def test_what_is_served_is_as_upstream_has_it_but_for_ids_of_log_probabilities(served):
    template = TEMPLATES[served.name]
    for ours, theirs in ((served.inputs, template.inputs), (served.outputs, template.outputs)):
        rows = {tensor.name: tensor for tensor in theirs}
        assert [rows.get(tensor.name, contract.LOG_PROB_IDS) for tensor in ours] == list(ours)


def test_the_engine_of_tensorrt_llm_has_every_tensor_of_the_template():
    config = configs.build(TENSORRT_LLM)["tensorrt_llm"]

    assert [tensor.name for tensor in config.input] == [tensor.name for tensor in upstream.ENGINE.inputs]
    assert [tensor.name for tensor in config.output] == [tensor.name for tensor in upstream.ENGINE.outputs]


@pytest.mark.parametrize("model", TEMPLATES)
def test_every_difference_to_the_template_is_listed_with_its_reason(model):
    config, template = configs.build(TENSORRT_LLM)[model], TEMPLATES[model]
    ours = {
        "input": {tensor.name for tensor in config.input},
        "output": {tensor.name for tensor in config.output},
        "parameter": set(config.parameters),
        "block": {"dynamic_batching"} if config.HasField("dynamic_batching") else set(),
    }
    theirs = {
        "input": {tensor.name for tensor in template.inputs},
        "output": {tensor.name for tensor in template.outputs},
        "parameter": set(known.PARAMETERS[model].split()),
        "block": {"dynamic_batching"} if model in known.BATCHING else set(),
    }
    for kind, keys_of_ours in ours.items():
        missing, added = keys(known.MISSING, model, kind), keys(known.ADDED, model, kind)
        if (model, kind) == ("tensorrt_llm", "parameter"):
            missing = set(LEFT_OUT)
        assert theirs[kind] - keys_of_ours == missing, kind
        assert keys_of_ours - theirs[kind] == added, kind


def keys(table, model, kind):
    return {key for names in table.get((model, kind), {}).values() for key in names.split()}


def test_the_ensemble_passes_on_only_what_the_engine_takes():
    engine = {tensor.name: tensor for tensor in upstream.ENGINE.inputs}
    ensemble = {tensor.name: tensor for tensor in upstream.ENSEMBLE.inputs}

    for inner, outer in upstream.PASSED_ON.items():
        assert replace(engine[inner], name=outer, flat=False, ragged=False) == replace(ensemble[outer], ragged=False)
