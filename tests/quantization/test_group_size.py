"""Which group sizes a model's widths allow, said before a weight is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trtpipe.errors import ConfigError
from trtpipe.quantization.stage import group_size_for

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
    "num_key_value_heads": 3, "num_hidden_layers": 30, "vocab_size": 49152,
}  # fmt: skip


def refused(tmp_path: Path, asked: int | str, **changes: Any) -> ConfigError:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | changes))
    with pytest.raises(ConfigError) as caught:
        group_size_for(tmp_path, asked)
    return caught.value


def test_every_offending_linear_and_what_is_legal_instead(tmp_path: Path) -> None:
    error = refused(tmp_path, 128)
    assert error.what == (
        "group size 128 does not divide hidden_size 576 (the input of the q, k, v, gate and up projections, in 30 "
        "layers); num_attention_heads x head_dim 576 (the input of the o projections, in 30 layers)"
    )
    assert error.fix == "legal group sizes for this model: 64 (on TensorRT-LLM group 64: TP 1, 3)"


def test_a_model_that_no_group_size_fits(tmp_path: Path) -> None:
    error = refused(tmp_path, "auto", intermediate_size=1500)
    assert "does not divide intermediate_size 1500 (the input of the down projections, in 30 layers)" in error.what
    assert error.fix == "legal group sizes for this model: none of 64 and 128"


def test_a_model_that_tensorrt_llm_does_not_know_gets_no_tp_values(tmp_path: Path) -> None:
    assert refused(tmp_path, 128, model_type="phi3").fix == "legal group sizes for this model: 64"


def test_o_24_a_stated_head_width_decides(tmp_path: Path) -> None:
    config = LLAMA | {"hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert group_size_for(tmp_path, "auto") == 128
