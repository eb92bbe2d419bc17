"""config.pbtxt: written, read back, and refused where a placeholder is left."""

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from trtpipe.errors import ConfigError
from trtpipe.triton_repo import pbtxt


def test_a_config_reads_back_as_it_was():
    config = ModelConfig(name="m", backend="python", max_batch_size=1)
    config.parameters["path"].string_value = 'with "quotes"\nand $ signs'

    assert pbtxt.parse(pbtxt.render(config), "m") == config


@pytest.mark.parametrize("text", ["${triton_backend}", "a/${engine_dir}/b", "${open"])
def test_a_placeholder_in_a_text_field_is_refused(text):
    with pytest.raises(ConfigError, match=r"placeholder left in the model config: m\.backend"):
        pbtxt.render(ModelConfig(name="m", backend=text))


def test_a_placeholder_is_found_in_maps_and_lists():
    config = ModelConfig(name="m")
    config.parameters["a"].string_value = "${A}"
    config.parameters["${B}"].string_value = "b"
    config.input.add(name="${C}")
    config.ensemble_scheduling.step.add(model_name="x").input_map["d"] = "${D}"

    with pytest.raises(ConfigError) as caught:
        pbtxt.render(config)

    assert all(f"${{{letter}}}" in caught.value.what for letter in "ABCD")


def test_a_placeholder_in_a_number_is_named_with_its_line():
    with pytest.raises(ConfigError, match=r"placeholder left: \$\{triton_max_batch_size\}") as caught:
        pbtxt.parse('name: "m"\nmax_batch_size: ${triton_max_batch_size}\n', "m/config.pbtxt")

    assert caught.value.where == "m/config.pbtxt:2"


def test_an_unknown_field_is_refused_with_its_line():
    with pytest.raises(ConfigError, match="max_batch_sise") as caught:
        pbtxt.parse('name: "m"\nmax_batch_sise: 4\n', "m/config.pbtxt")

    assert caught.value.where == "m/config.pbtxt:2"
