"""The ensemble check: each way in which a wiring can be wrong is named."""

import pytest
from tritonclient.grpc import model_config_pb2 as mc

from served_engines import LOCAL
from trtpipe.errors import ConfigError, Problems
from trtpipe.triton_repo import configs, graph


@pytest.fixture
def models():
    return configs.build(LOCAL)


def steps(models):
    return models["ensemble"].ensemble_scheduling.step


def test_the_release_is_wired_right(models):
    graph.check(models)


def test_a_missing_model_is_named(models):
    del models["postprocessing"]

    with pytest.raises(Problems) as caught:
        graph.check(models)

    assert "postprocessing" in str(caught.value)


def test_an_unknown_input_is_named_with_the_known_ones(models):
    steps(models)[0].input_map["QUERRY"] = "text_input"

    with pytest.raises(ConfigError, match="no input `QUERRY`") as caught:
        graph.check(models)

    assert "QUERY" in caught.value.fix


def test_a_type_that_changes_is_named(models):
    models["ensemble"].input[0].data_type = mc.TYPE_INT32

    with pytest.raises(ConfigError, match="`text_input` is INT32, `QUERY` takes STRING"):
        graph.check(models)


def test_a_tensor_without_source_is_named(models):
    del steps(models)[0].output_map["INPUT_ID"]

    with pytest.raises(ConfigError, match="nothing before this step gives `_INPUT_ID`"):
        graph.check(models)


def test_an_unconnected_required_input_is_named(models):
    del steps(models)[1].input_map["input_lengths"]

    with pytest.raises(ConfigError, match="`input_lengths` is not connected"):
        graph.check(models)


def test_two_sources_are_named(models):
    steps(models)[1].output_map["sequence_length"] = "_TOKENS_BATCH"

    with pytest.raises(Problems) as caught:
        graph.check(models)

    assert "`_TOKENS_BATCH` has a source already" in str(caught.value)


def test_an_ensemble_input_that_nobody_takes_is_named(models):
    models["ensemble"].input.add(name="lonely", data_type=mc.TYPE_BOOL)

    with pytest.raises(ConfigError, match="no step takes the input `lonely`"):
        graph.check(models)


def test_an_output_without_source_or_of_another_type_is_named(models):
    models["ensemble"].output[0].data_type = mc.TYPE_BOOL
    models["ensemble"].output.add(name="nothing", data_type=mc.TYPE_BOOL)

    with pytest.raises(Problems) as caught:
        graph.check(models)

    assert "`text_output` is made as STRING" in str(caught.value)
    assert "no step gives the output `nothing`" in str(caught.value)
