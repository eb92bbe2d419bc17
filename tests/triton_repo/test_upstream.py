"""The contract and the generated configs against the templates of TensorRT-LLM 1.2.1."""

from dataclasses import replace

import pytest
from tritonclient.grpc import model_config_pb2 as mc

import upstream_differences as known
from served_engines import TENSORRT_LLM
from trtpipe.triton_repo import configs, contract, upstream
from trtpipe.triton_repo.engine_parameters import FIXED, LEFT_OUT
from trtpipe.triton_repo.pbtxt import PLACEHOLDER
from upstream_templates import TEMPLATES, keys

SERVED = (
    *(contract.PREPROCESSING, contract.ENGINE, contract.POSTPROCESSING, contract.ENSEMBLE, contract.BLS),
    *(contract.GUIDED_ENSEMBLE, contract.GUIDED_BLS),
)
# What the package's own table of tensors has for the types that the templates leave open.
TYPES = {
    "${logits_datatype}": f"TYPE_{upstream.LOGITS}",
    "${encoder_input_features_data_type}": f"TYPE_{upstream.ENCODER_FEATURES}",
    "${prompt_embedding_table_data_type}": f"TYPE_{upstream.PROMPT_TABLE}",
}


@pytest.fixture(scope="module")
def ours():
    return {model: keys(config) for model, config in configs.build(TENSORRT_LLM).items()}


def tensors(model):
    """Return the keys of a model's rows, as ``keys`` has those of a config."""
    config = mc.ModelConfig(name=model.name)
    for found, rows in ((config.input, model.inputs), (config.output, model.outputs)):
        for row in rows:
            tensor = found.add(name=row.name, data_type=f"TYPE_{row.type}", dims=row.dims)
            if row.flat:
                tensor.reshape.SetInParent()
            if row.optional or row.ragged:
                tensor.optional, tensor.allow_ragged_batch = row.optional, row.ragged
    return keys(config)


def of_template(model):
    rows = {key: row for key, row in TEMPLATES[model].items() if key.startswith(("input.", "output."))}
    return {key: PLACEHOLDER.sub(lambda found: TYPES[found.group()], row) for key, row in rows.items()}


def listed(table, model):
    return {key for names in table.get(model, {}).values() for key in names.split()}


@pytest.mark.parametrize("model", upstream.MODELS, ids=lambda model: model.name)
def test_the_tables_have_the_tensors_of_the_templates(model):
    assert tensors(model) == of_template(model.name)


@pytest.mark.parametrize("served", SERVED, ids=lambda model: model.name)
def test_what_is_served_is_as_upstream_has_it(served):
    # Every model in Python tells the ids of log probabilities, and the ensemble where its engine is one.
    added = {*listed(known.ADDED, served.name), f"output.{contract.LOG_PROB_IDS.name}"}
    own = {key: row for key, row in tensors(served).items() if key not in added}

    assert own.items() <= of_template(served.name).items()


def test_the_engine_of_tensorrt_llm_has_every_tensor_of_the_template_in_its_order():
    config = configs.build(TENSORRT_LLM)["tensorrt_llm"]

    assert [tensor.name for tensor in config.input] == [tensor.name for tensor in upstream.ENGINE.inputs]
    assert [tensor.name for tensor in config.output] == [tensor.name for tensor in upstream.ENGINE.outputs]


@pytest.mark.parametrize("model", TEMPLATES)
def test_every_key_that_is_missing_or_added_is_listed_with_its_reason(model, ours):
    left_out = {f"parameters.{key}" for key in LEFT_OUT} if model == "tensorrt_llm" else set()

    assert TEMPLATES[model].keys() - ours[model].keys() == listed(known.MISSING, model) | left_out
    assert ours[model].keys() - TEMPLATES[model].keys() == listed(known.ADDED, model)


@pytest.mark.parametrize("model", TEMPLATES)
def test_every_other_value_is_listed_with_its_reason(model, ours):
    template = TEMPLATES[model]
    other = {key for key, value in ours[model].items() if template.get(key, value) != value}
    filled = {key for key in other if PLACEHOLDER.search(template[key])}

    assert filled == listed(known.FILLED, model)
    assert other - filled == listed(known.OTHERWISE, model)
    # of a tensor whose type is filled in, nothing else is changed
    assert {key: ours[model][key] for key in of_template(model) if key in filled}.items() <= of_template(model).items()


@pytest.mark.parametrize("table", [known.MISSING, known.ADDED, known.OTHERWISE, known.FILLED])
def test_differences_are_listed_once_and_for_models_that_there_are(table):
    assert table.keys() <= TEMPLATES.keys()
    for model, reasons in table.items():
        names = [key for keys_of_one in reasons.values() for key in keys_of_one.split()]
        assert len(names) == len(set(names)), model


def test_what_is_called_a_default_is_among_the_fixed_parameters():
    (defaults,) = (names for reason, names in known.FILLED["tensorrt_llm"].items() if "own default" in reason)

    assert {key.removeprefix("parameters.") for key in defaults.split()} <= FIXED.keys()


def test_the_ensemble_passes_on_only_what_the_engine_takes():
    engine = {tensor.name: tensor for tensor in upstream.ENGINE.inputs}
    ensemble = {tensor.name: tensor for tensor in upstream.ENSEMBLE.inputs}

    for inner, outer in upstream.PASSED_ON.items():
        assert replace(engine[inner], name=outer, flat=False, ragged=False) == replace(ensemble[outer], ragged=False)
