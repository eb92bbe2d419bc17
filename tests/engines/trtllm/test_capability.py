"""The capability table, and what it makes of targets: what is refused, what the builder changes, and the ways out."""

from __future__ import annotations

from typing import Any

import pytest

from planning import lengths, of_kind, plan, refused
from trtpipe.engines.trtllm.capability import CAPABILITIES, KV_DTYPES, QUANT_ALGO, SPECULATIONS, capability_of
from trtpipe.engines.trtllm.format_checks import Quantized
from trtpipe.engines.trtllm.gpus import GPUS, gpu_of
from trtpipe.errors import ConfigError

VERSION = "1.2.1"


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
@pytest.mark.parametrize("kv", KV_DTYPES)
@pytest.mark.parametrize("weights", QUANT_ALGO)
def test_every_combination_has_exactly_one_row_with_its_reason_and_source(weights: str, kv: Any, gpu: Any) -> None:
    rows = [
        row
        for row in CAPABILITIES[VERSION]
        if weights in row.weights and row.kv_dtype == kv and row.sm_min <= gpu.sm <= row.sm_max
    ]
    assert rows == [capability_of(VERSION, weights, kv, gpu.sm)]
    (row,) = rows
    assert row.source
    assert row.verified
    assert bool(row.why) == (not row.built or not row.paged_context_fmha)
    assert row.built or not row.paged_context_fmha


# Worked by hand from builder.py: weights, KV type, SM -> built, paged context FMHA
@pytest.mark.parametrize(
    ("weights", "kv", "sm", "built", "paged"),
    [
        ("w4a16_awq", "model", 80, True, True),
        ("w4a16_awq", "fp8_e4m3", 80, True, False),
        ("w4a16_awq", "fp8_e4m3", 90, True, False),
        ("w4a16_awq", "int8", 80, True, False),
        ("w4a16_gptq", "fp8_e4m3", 89, True, False),
        ("w4a16_gptq", "int8", 90, False, False),
        ("model", "fp8_e4m3", 90, True, False),
        ("fp8", "fp8_e4m3", 90, True, True),
        ("fp8", "model", 89, True, True),
        ("fp8", "int8", 90, True, False),
        ("w4a8_awq", "fp8_e4m3", 89, True, True),
        ("fp8", "model", 80, False, False),
        ("w4a8_awq", "fp8_e4m3", 86, False, False),
        ("w4a8_awq", "model", 80, False, False),
        ("w4a16_awq", "model", 100, False, False),
    ],
)
def test_rows_worked_by_hand(weights: str, kv: Any, sm: int, *, built: bool, paged: bool) -> None:
    row = capability_of(VERSION, weights, kv, sm)
    assert row is not None
    assert (row.built, row.paged_context_fmha, row.reuse, row.chunked_context) == (built, paged, paged, paged)


def test_every_speculative_mode_has_a_row() -> None:
    from typing import get_args

    from trtpipe.config.target import SpeculativeMode

    assert {row.mode for row in SPECULATIONS[VERSION]} == set(get_args(SpeculativeMode))


def test_o_32_awq_with_an_fp8_kv_cache_loses_reuse_and_chunked_context_and_says_so() -> None:
    made = plan("llama-3.1-70b", "a100x8", lengths=lengths(2000))
    (said,) = of_kind(made, "changed")
    assert said.what == "W4A16_AWQ with FP8 KV cache: paged context FMHA is switched off"
    assert said.cost is not None
    assert "no KV reuse (it would save 25.0% of this log's prefill), no chunked context" in said.cost
    assert made.memory is not None
    pools = made.memory.pools
    held = f"({pools['model'].tokens:,} KV tokens instead of {pools['fp8_e4m3'].tokens:,})"
    assert said.fix == f"kv_dtype: model keeps both {held}"
    assert made.refusals == []


def test_o_32_on_a_newer_gpu_fp8_weights_are_a_way_out() -> None:
    made = plan("llama-3.1-8b", "h200", kv_dtype="fp8_e4m3", kv_reuse=False, chunked_context=False)
    (said,) = of_kind(made, "changed")
    assert said.fix is not None
    assert "FP8 KV keeps both under weights: fp8 or w4a8_awq" in said.fix
    fp8 = plan("llama-3.1-8b", "h200", kv_dtype="fp8_e4m3", weights="fp8")
    assert (refused(fp8), of_kind(fp8, "changed")) == ([], [])


@pytest.mark.parametrize("kv", ["fp8_e4m3", "int8"])
def test_o_30_reuse_without_paged_context_fmha_is_refused(kv: str) -> None:
    (said,) = plan("llama-3.1-70b", "a100x8-reuse", kv_dtype=kv, chunked_context=False).refusals
    assert said.what.endswith("paged context FMHA is switched off, so kv_reuse cannot be had")
    assert said.where == "kv_dtype"


def test_o_31_int8_kv_and_reuse_exclude_each_other() -> None:
    (said,) = plan("llama-3.1-70b", "a100x8-reuse", kv_dtype="int8").refusals
    assert "so kv_reuse and chunked_context cannot be had" in said.what
    assert said.fix is not None
    ways = said.fix.split("; or ")
    assert ways[0].startswith("kv_dtype: model keeps both")
    assert ways[1] == "keep this KV cache and write kv_reuse: false, chunked_context: false"
    assert refused(plan("llama-3.1-70b", "a100x8", kv_dtype="int8")) == []


@pytest.mark.parametrize(("maker", "group"), [("AutoAWQ, 4 bits, group size 128, with zero points", 128)])
def test_o_23_autoawq_is_gptq_to_tensorrt_llm(maker: str, group: int) -> None:
    from planning import config, target
    from trtpipe.engines.trtllm import plan as planning

    quantized = Quantized("w4a16_gptq", maker, group)
    wrong = planning.make(config("llama-3.1-8b"), target("a100x1"), where="config.json", quantized=quantized)
    assert refused(wrong) == [
        f"the model is {maker}: to TensorRT-LLM that is W4A16_GPTQ, and the target says W4A16_AWQ"
    ]
    gptq = target("a100x1", weights="w4a16_gptq")
    assert planning.make(config("llama-3.1-8b"), gptq, where="config.json", quantized=quantized).refusals == []
    other = planning.make(
        config("llama-3.1-8b"), target("a100x1", weights="w4a16_gptq", group_size=64), where="", quantized=quantized
    )
    assert refused(other) == ["the model has groups of 128, the target says 64"]


def test_o_18_weights_that_the_gpu_cannot_take_are_refused_with_those_it_can() -> None:
    (said,) = plan("llama-3.1-8b", "a100x1", weights="w4a8_awq").refusals
    assert said.what == "there is no engine for a100-80gb (SM 80) with W4A8_AWQ weights and 16-bit KV cache"
    assert said.why == "FP8 activations need SM 89 or newer"
    assert said.fix == "weights that this GPU takes with this KV cache: w4a16_awq, w4a16_gptq, model"


def test_a_family_is_held_to_what_upstream_lists() -> None:
    assert refused(plan("phi-3-mini-4k", "a100x1")) == ["W4A16_AWQ is not listed for `phi3`"]
    assert refused(plan("phi-3-mini-4k", "h200", weights="fp8")) == []
    assert "tensor parallelism is not listed for `phi3`" in refused(
        plan("phi-3-mini-4k", "h200", weights="fp8", tensor_parallel=2)
    )
    assert refused(plan("mistral-7b-v0.3", "a100x1", weights="w4a16_gptq")) == [
        "W4A16_GPTQ is not listed for `mistral`"
    ]
    unknown = plan("llama-3.1-8b", "a100x1", changes={"model_type": "gpt_neox"})
    assert refused(unknown)[0] == "the model type `gpt_neox` is not planned for TensorRT-LLM 1.2.1"


def test_biased_keys_and_an_8_bit_kv_cache_are_warned_of() -> None:
    said = [finding.what for finding in of_kind(plan("qwen2.5-72b", "a100x8"), "warning")]
    assert said[0] == "FP8 KV caches of models with biased q, k and v have been seen to fail"
    assert not any("biased" in finding.what for finding in of_kind(plan("llama-3.1-70b", "a100x8"), "warning"))
    assert of_kind(plan("qwen2.5-72b", "a100x8-reuse"), "warning") == []


def test_an_fp8_kv_cache_of_a_converted_checkpoint_has_no_calibrated_scales() -> None:
    changes: dict[str, Any] = {"kv_dtype": "fp8_e4m3", "kv_reuse": False, "chunked_context": False}
    said = [finding.what for finding in plan("llama-3.1-8b", "l40s", weights="w4a16_gptq", **changes).findings]
    assert "an FP8 KV cache under W4A16_GPTQ has scales of 1.0: nothing calibrates them" in said
    assert refused(plan("llama-3.1-8b", "l40s", weights="w4a16_gptq", **changes | {"kv_dtype": "int8"})) == [
        "there is no engine for l40s (SM 89) with W4A16_GPTQ weights and INT8 KV cache"
    ]


def test_fp8_kv_before_sm_89_is_warned_of() -> None:
    changes: dict[str, Any] = {"kv_dtype": "fp8_e4m3", "kv_reuse": False, "chunked_context": False}
    assert any("SM 80 has no FP8" in finding.what for finding in plan("llama-3.1-8b", "a100x1", **changes).findings)
    assert not any("no FP8" in finding.what for finding in plan("llama-3.1-8b", "l40s", **changes).findings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"speculative_mode": "medusa", "draft_tokens_max": 4},
         "speculative_mode medusa needs Medusa heads, and a plain causal LM has none"),
        ({"speculative_mode": "eagle", "draft_tokens_max": 300},
         "speculative_mode eagle takes at most draft_tokens_max 256, not 300"),
        ({"speculative_mode": "eagle", "draft_tokens_max": 4, "max_batch_size": 600},
         "speculative_mode eagle takes at most max_batch_size 512, not 600"),
        ({"draft_tokens_max": 4}, "speculative_mode none with draft_tokens_max 4"),
        ({"speculative_mode": "lookahead_decoding"}, "speculative_mode lookahead_decoding with draft_tokens_max 0"),
    ],
)  # fmt: skip
def test_speculative_modes_that_cannot_be_had(changes: dict[str, Any], said: str) -> None:
    assert said in refused(plan("llama-3.1-8b", "a100x1", **changes))


@pytest.mark.parametrize("mode", [row.mode for row in SPECULATIONS[VERSION] if row.mode != "none"])
def test_a_speculative_mode_that_no_release_serves_is_refused_by_name_and_reason(mode: str) -> None:
    made = plan("llama-3.1-8b", "a100x1", speculative_mode=mode, draft_tokens_max=4)
    what = f"speculative_mode {mode} is not served: the engine would be built for it, and run without it"
    (said,) = [one for one in made.refusals if one.what == what]
    assert said.why
    assert said.fix == "speculative_mode: none, draft_tokens_max: 0"
    assert said.source


@pytest.mark.parametrize("mode", ["eagle", "draft_tokens_external"])
def test_speculative_modes_on_reused_blocks_need_paged_context_fmha(mode: str) -> None:
    made = plan("llama-3.1-8b", "a100x8", speculative_mode=mode, draft_tokens_max=4)
    assert f"speculative_mode {mode} needs paged context FMHA, which FP8 KV under W4A16_AWQ does not have" in refused(
        made
    )


def test_what_the_builder_raises_for_a_speculative_mode_is_told() -> None:
    made = plan(
        "llama-3.1-8b", "a100x1", speculative_mode="lookahead_decoding", draft_tokens_max=7, max_batch_size=512,
        max_num_tokens=2048,
    )  # fmt: skip
    assert [finding.what for finding in of_kind(made, "changed")] == [
        "max_seq_len 8,192 becomes 8,199", "max_num_tokens 2,048 becomes 4,096"
    ]  # fmt: skip
    listed = plan("llama-3.1-8b", "a100x1", speculative_mode="draft_tokens_external", draft_tokens_max=4)
    assert "is not listed with W4A16_AWQ weights" in of_kind(listed, "warning")[0].what


def test_an_unknown_gpu_is_refused_with_a_near_one() -> None:
    with pytest.raises(ConfigError, match="there is no GPU type `a100-80g`") as caught:
        gpu_of("a100-80g", "target.yaml:2:1")
    assert (caught.value.where, caught.value.fix) == ("target.yaml:2:1", "did you mean `a100-80gb`?")
    with pytest.raises(ConfigError) as caught:
        gpu_of("tpu", "x")
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("known: a100-40gb, ")
