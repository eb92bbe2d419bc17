"""The printed command against the options of TensorRT-LLM's two scripts, as their parse_arguments has them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from trtpipe.quantization.exports.conversion import CONVERTERS, conversion_command

# Those of `examples/models/core/{llama,qwen}/convert_checkpoint.py` that both have, with their types and choices.
OPTIONS: dict[str, type] = {"--model_dir": str, "--output_dir": str, "--tp_size": int, "--pp_size": int, "--dtype": str}
DTYPES = ("auto", "float16", "bfloat16", "float32")


@pytest.mark.parametrize("model_type", CONVERTERS)
def test_the_scripts_would_read_it(model_type: str) -> None:
    python, script, *arguments = conversion_command(
        model_type, Path("in"), Path("out"), tensor_parallel=4, pipeline_parallel=2
    )
    assert (python, script) == ("python3", f"{CONVERTERS[model_type]}/convert_checkpoint.py")
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for option, kind in OPTIONS.items():
        parser.add_argument(option, type=kind, choices=DTYPES if option == "--dtype" else None)
    assert vars(parser.parse_args(arguments)) == {
        "model_dir": "in", "output_dir": "out", "tp_size": 4, "pp_size": 2, "dtype": "float16"
    }  # fmt: skip


def test_each_model_has_its_script() -> None:
    assert CONVERTERS == {"llama": "examples/models/core/llama", "qwen2": "examples/models/core/qwen"}
