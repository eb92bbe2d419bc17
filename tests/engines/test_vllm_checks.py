"""What is noticed on a loaded engine."""

from __future__ import annotations

from typing import Any

import pytest

from trtpipe.engines.vllm_checks import answer_faults, kv_scale_faults, setting_faults

ARGUMENTS = {
    "kv_cache_dtype": "fp8_e4m3",
    "block_size": 32,
    "max_model_len": 2048,
    "max_num_seqs": 16,
    "enable_prefix_caching": True,
    "dtype": "bfloat16",
}
RESOLVED = {
    "kv_dtype": "fp8_e4m3",
    "kv_block_tokens": 32,
    "kv_tokens": 23296,
    "max_model_len": 2048,
    "max_num_seqs": 16,
    "prefix_caching": True,
    "weights_dtype": "bfloat16",
    "int4_layers": 120,
    "w4a8_layers": 0,
}
SCALES = {f"model.layers.{n}.self_attn.{letter}_scale": 0.1 * (n + 1) for n in (0, 1) for letter in "kv"}


def test_an_engine_as_asked_for_has_no_faults() -> None:
    assert setting_faults(ARGUMENTS, RESOLVED) == []


@pytest.mark.parametrize(
    ("became", "fault"),
    [
        ({"kv_dtype": "bfloat16"}, "kv_dtype is bfloat16, not fp8_e4m3"),
        ({"kv_block_tokens": 128}, "kv_block_tokens is 128, not 32"),
        ({"prefix_caching": False}, "prefix_caching is False, not True"),
        ({"max_model_len": 1024}, "max_model_len is 1024, not 2048"),
        ({"weights_dtype": "float16"}, "weights_dtype is float16, not bfloat16"),
        ({"kv_tokens": 2016}, "the KV pool holds 2016 tokens, not 2048"),
        ({"int4_layers": 0}, "no layer has 4-bit weights"),
        ({"w4a8_layers": 120}, "120 layers quantize activations to 8 bits (W4A8, not W4A16)"),
    ],
)
def test_each_silent_change_is_a_fault(became: dict[str, Any], fault: str) -> None:
    assert setting_faults(ARGUMENTS, {**RESOLVED, **became}) == [fault]


def test_kv_scales_of_the_checkpoint_are_right() -> None:
    assert kv_scale_faults(SCALES, SCALES) == []


def test_a_scale_of_one_is_right_where_the_checkpoint_says_so() -> None:
    ones = dict.fromkeys(SCALES, 1.0)
    assert kv_scale_faults(ones, ones) == []


def test_scales_that_are_absent_are_counted_by_layer() -> None:
    ones = dict.fromkeys(SCALES, 1.0)
    assert kv_scale_faults(ones, {}) == [
        "KV scales not applied: 2 layers have none stored, first model.layers.0.self_attn"
    ]
    only_k = {name: scale for name, scale in SCALES.items() if name.endswith("k_scale")}
    assert kv_scale_faults(SCALES, only_k)[0].startswith("KV scales not applied: 2 layers")


def test_scales_under_other_names_are_noticed_on_both_sides() -> None:
    renamed = {name.replace("self_attn", "attention"): scale for name, scale in SCALES.items()}
    faults = kv_scale_faults(dict.fromkeys(SCALES, 1.0), renamed)
    assert [fault.split(",")[0] for fault in faults] == [
        "KV scales not applied: 2 layers have none stored",
        "KV scales not applied: 2 layers unknown to the engine",
    ]


def test_a_scale_that_was_not_taken_is_noticed() -> None:
    loaded = {**SCALES, "model.layers.1.self_attn.v_scale": 1.0}
    assert kv_scale_faults(loaded, SCALES) == [
        "KV scales not applied: 1 layers have other values, first model.layers.1.self_attn"
    ]


@pytest.mark.parametrize(
    ("answer_ids", "text"),
    [
        ([7, 3, 9, 2], "The capital is Paris."),
        ([5, 2], "Yes"),
        ([4, 4, 4], "ha ha ha"),
        ([4, 5, 6, 7], "a character cut at the end \ufffd\ufffd"),
    ],
)
def test_sound_answers_pass(answer_ids: list[int], text: str) -> None:
    assert answer_faults(answer_ids, text) == []


@pytest.mark.parametrize(
    ("answer_ids", "text", "fault"),
    [
        ([2], "", "the answer is empty"),
        ([2, 8], " \n", "the answer is empty"),
        ([0] * 32, "!" * 32, "the answer is token 0 over and over (32 of 32)"),
        ([9] + [5] * 31, "so the the the", "the answer is token 5 over and over (31 of 32)"),
        ([4, 5, 6, 7], "x\ufffdy\ufffd z", "the answer is not valid text"),
    ],
)
def test_answers_of_broken_weights_are_noticed(answer_ids: list[int], text: str, fault: str) -> None:
    assert answer_faults(answer_ids, text) == [fault]
