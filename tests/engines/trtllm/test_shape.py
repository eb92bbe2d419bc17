"""config.json read as a decoder's widths; what is no dense decoder is refused."""

from __future__ import annotations

from typing import Any

import pytest

from planning import config, plan, shape
from trtpipe.engines.trtllm.shape import DecoderShape
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.rotary import rotary_of


def test_the_context_is_what_trtllm_build_deduces() -> None:
    assert shape("llama-3.1-8b").positions == 131072  # llama3: the factor is in it already
    assert shape("llama-2-7b").positions == 4096
    assert shape("llama-2-7b", rope_scaling={"type": "linear", "factor": 4.0}).positions == 16384
    assert shape("qwen2.5-7b", rope_parameters={"rope_type": "dynamic", "factor": 2.0}).positions == 65536


def test_a_window_counts_only_where_it_is_in_use() -> None:
    assert shape("qwen2.5-72b").window is None
    assert shape("qwen2.5-72b", sliding_window=1000).window is None
    assert shape("qwen2.5-72b", sliding_window=1000, use_sliding_window=True).window == 1000
    assert shape("mistral-7b-v0.3").window is None
    assert shape("phi-3-mini-4k").window == 2047
    old = plan("mistral-7b-v0.3", "a100x1", changes={"sliding_window": 4096})
    assert "the model looks back 4,096 tokens only, which no checkpoint says" in [one.what for one in old.findings]


def test_what_makes_an_8_bit_kv_cache_risky_is_read() -> None:
    assert shape("qwen2.5-72b").biased_qkv
    assert not shape("llama-3.1-8b").biased_qkv
    assert shape("llama-3.1-8b", attention_bias=True).biased_qkv
    assert shape("qwen2.5-72b", model_type="qwen3").normed_qk


def test_heads_and_head_width_have_defaults() -> None:
    made = config("llama-2-7b")
    del made["num_key_value_heads"]
    read = DecoderShape.of(made, "config.json")
    assert (read.kv_heads, read.head_width) == (32, 128)


@pytest.mark.parametrize("key", ["rope_theta", "rope_scaling", "sliding_window", "head_dim", "num_key_value_heads"])
def test_null_is_not_there(key: str) -> None:
    made = config("llama-2-7b")
    without = {name: value for name, value in made.items() if name != key}
    assert DecoderShape.of({**made, key: None}, "config.json") == DecoderShape.of(without, "config.json")
    assert rotary_of({**made, key: None}) == rotary_of(without)


@pytest.mark.parametrize(
    ("changes", "missing", "said"),
    [
        ({}, ("hidden_size", "vocab_size"), ["`hidden_size` is missing", "`vocab_size` is missing"]),
        ({"hidden_size": "4096"}, (), ["`hidden_size` must be a whole number above 0, and is '4096'"]),
        ({"num_hidden_layers": 0}, (), ["`num_hidden_layers` must be a whole number above 0, and is 0"]),
        ({"num_key_value_heads": "x"}, (), ["`num_key_value_heads` must be a whole number above 0, and is 'x'"]),
        ({"head_dim": [1]}, (), ["`head_dim` must be a whole number above 0, and is [1]"]),
        ({"vocab_size": 1 << 31}, (), ["`vocab_size` must be below 2147483648, and is 2147483648"]),
        ({"rope_theta": "x"}, (), ["`rope_theta` must be a number above 0, and is 'x'"]),
        ({"rope_parameters": [1]}, (), ["`rope_parameters` must be an object, and is [1]"]),
        ({"rope_scaling": {"factor": []}}, (), ["`rope_scaling.factor` must be a number above 0, and is []"]),
        ({"sliding_window": float("nan")}, (), ["`sliding_window` must be a whole number, and is nan"]),
        ({"hidden_size": 8}, (), ["32 attention heads in a hidden size of 8, and no head_dim"]),
        ({"num_local_experts": 8}, (), ["a mixture of 8 experts: only dense decoders are planned for TensorRT-LLM"]),
    ],
)
def test_what_is_no_dense_decoder_is_refused(
    changes: dict[str, Any], missing: tuple[str, ...], said: list[str]
) -> None:
    made = {key: value for key, value in config("llama-2-7b", **changes).items() if key not in missing}
    with pytest.raises(ConfigError) as caught:
        DecoderShape.of(made, "model/config.json")
    assert [problem.what for problem in caught.value.each()] == said
    assert {problem.where for problem in caught.value.each()} == {"model/config.json"}
