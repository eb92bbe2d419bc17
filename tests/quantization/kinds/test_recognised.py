"""Which quantized checkpoints are known, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trtpipe.errors import ConfigError
from trtpipe.quantization.kinds.recognised import recognise, require_unquantized

# the config of a published AutoAWQ checkpoint
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False, "sym": True}
MODELOPT = {"quant_algo": "W4A16_AWQ", "group_size": 64, "has_zero_point": False, "pre_quant_scale": True}


def folder(tmp_path: Path, quantization: dict[str, Any] | None, modelopt: dict[str, Any] | None = None) -> Path:
    config = {"quantization_config": quantization} if quantization else {}
    (tmp_path / "config.json").write_text(json.dumps(config))
    if modelopt:
        (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": modelopt}))
    return tmp_path


@pytest.mark.parametrize(
    ("quantization", "modelopt", "words"),
    [
        (AWQ, None, "AutoAWQ, 4 bits, group size 128, with zero points"),
        (GPTQ, None, "GPTQ, 4 bits, group size 64, symmetric"),
        (None, MODELOPT, "ModelOpt, 4 bits, group size 64, symmetric"),
    ],
)
def test_a_quantized_model_is_recognised_and_the_ways_on_are_named(
    tmp_path: Path, quantization: dict[str, Any] | None, modelopt: dict[str, Any] | None, words: str
) -> None:
    model = folder(tmp_path, quantization, modelopt)
    assert recognise(model).words == words
    with pytest.raises(ConfigError, match=f"the model is quantized already: {words}") as caught:
        require_unquantized(model)
    assert caught.value.where == str(tmp_path / "config.json")
    assert "quantization.checkpoint with quantization.kind existing" in str(caught.value.fix)
    assert ("W4A16_GPTQ of it, never W4A16_AWQ" in str(caught.value.fix)) == (modelopt is None)


@pytest.mark.parametrize(
    ("quantization", "described"),
    [
        (GPTQ | {"desc_act": True}, "quant_method gptq, bits 4, group_size 64, desc_act True"),
        (AWQ | {"version": "gemv"}, "version gemv"),
        ({"quant_method": "fp8"}, "quant_method fp8"),
    ],
)
def test_what_cannot_be_taken_over_is_described(tmp_path: Path, quantization: dict[str, Any], described: str) -> None:
    model = folder(tmp_path, quantization)
    for refuse in (recognise, require_unquantized):
        with pytest.raises(ConfigError, match=described):
            refuse(model)


def test_gptq_zero_points_have_two_forms(tmp_path: Path) -> None:
    assert recognise(folder(tmp_path, GPTQ)).zero_offset == 1
    assert recognise(folder(tmp_path, GPTQ | {"checkpoint_format": "gptq_v2"})).zero_offset == 0
    assert not recognise(folder(tmp_path, GPTQ | {"sym": False})).symmetric


def test_an_unquantized_model_passes(tmp_path: Path) -> None:
    require_unquantized(folder(tmp_path, None))
    with pytest.raises(ConfigError, match=r"config\.json has no quantization_config"):
        recognise(tmp_path)
