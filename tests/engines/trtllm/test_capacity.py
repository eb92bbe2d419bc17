"""Weights, reserve and KV cache: against public logs, against worked figures, and rules that must hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import plan, shape
from trtpipe.engines.trtllm import capacity, weights
from trtpipe.engines.trtllm.capability import KV_DTYPES
from trtpipe.engines.trtllm.capacity import MIB
from trtpipe.engines.trtllm.division import Division

GIB = 1 << 30


def division(name: str, size: int = 1, *, format_: str = "w4a16_awq", stages: int = 1, **changes: Any) -> Division:
    return Division(shape(name, **changes), format_, 128, size, stages, pad=True)


def test_weights_agree_with_public_logs() -> None:
    """Qwen2.5-7B: 5306 MB at the build of W4A16_AWQ (a report on 1.2.1), 14541 MiB in 16 bit (TensorRT-LLM 2894)."""
    assert weights.of_stage(division("qwen2.5-7b"), 0).total_bytes / MIB == pytest.approx(5306, rel=0.01)
    in_16_bit = weights.of_stage(division("qwen2.5-7b", format_="model"), 0)
    assert in_16_bit.total_bytes / MIB == pytest.approx(14541, rel=0.005)


@pytest.mark.parametrize(("tokens", "reported_bytes"), [(2048, 262e6), (512, 91e6)])
def test_activations_agree_with_the_report_that_they_are_from(tokens: int, reported_bytes: float) -> None:
    estimate = capacity.activation_bytes(division("qwen2.5-7b"), max_num_tokens=tokens, max_batch_size=1)
    assert estimate == pytest.approx(reported_bytes, rel=0.05)


def test_a_public_log_of_blocks_is_met_exactly() -> None:
    """T:docs/source/legacy/reference/memory.md: 70.48 GiB free, 64 tokens a block, 4060 blocks, 63.44 GiB."""
    made = capacity.pool(division("llama-2-7b"), "fp8_e4m3", free_bytes=[int(70.48 * GIB)], share=0.9, block_tokens=64)
    assert made.blocks == 4060
    assert made.blocks * 64 * made.bytes_per_token / GIB == pytest.approx(63.44, abs=0.005)


@pytest.mark.parametrize(("free_gib", "blocks"), [(28.585, 7527), (28.589, 7528), (28.5949, 7530)])
def test_another_public_log_of_blocks_is_met(free_gib: float, blocks: int) -> None:
    """TensorRT-LLM issue 2894, Qwen2.5-7B: 28.59 GiB free, 64 tokens a block, 7528 blocks, 481,792 tokens, 25.73 GiB.

    What the log rounds to 28.59 GiB holds 7527 to 7530 blocks.
    """
    made = capacity.pool(division("qwen2.5-7b"), "model", free_bytes=[int(free_gib * GIB)], share=0.9, block_tokens=64)
    assert (made.bytes_per_token, made.blocks) == (57_344, blocks)
    if blocks == 7528:
        assert made.blocks * 64 == 481_792
        assert made.blocks * 64 * made.bytes_per_token / GIB == pytest.approx(25.73, abs=0.005)


def test_a_log_of_vllm_is_met_too() -> None:
    """vLLM issue 24577, 28 layers, 8 KV heads of 128: 69.66 GiB for KV, blocks of 16, 652,144 tokens, 159.21 x 4096."""
    shared = division("qwen2.5-7b", num_key_value_heads=8)
    made = capacity.pool(shared, "model", free_bytes=[int(69.66 * GIB)], share=1.0, block_tokens=16)
    assert made.bytes_per_token == 114_688
    assert made.tokens == pytest.approx(652_144, rel=1e-4)
    logged = replace(made, tokens=652_144, blocks=652_144 // 16)
    assert (logged.blocks, logged.sequences(4096)) == (40_759, 159)
    assert logged.tokens / 4096 == pytest.approx(159.21, abs=0.005)


def test_plain_attention_takes_half_a_mebibyte_a_token() -> None:
    """TensorRT-LLM issue 1400: Llama-2-7B in 16 bit, 132,608 tokens: 69,524,783,104 B exactly."""
    shared = division("llama-2-7b")
    per_token = capacity.kv_bytes_per_token(shared, 0, "model")
    assert (per_token, 132_608 * per_token) == (524_288, 69_524_783_104)
    made = capacity.pool(shared, "model", free_bytes=[69_524_783_104], share=1.0, block_tokens=32)
    assert (made.tokens, made.blocks) == (132_608, 4_144)


@pytest.mark.parametrize(
    ("name", "size", "kib_16_bit"), [("qwen2.5-72b", 8, 40), ("llama-3.1-70b", 8, 40), ("qwen2.5-32b", 8, 32),
                                     ("qwen2.5-7b", 4, 14)]
)  # fmt: skip
def test_kv_bytes_of_a_token_and_rank(name: str, size: int, kib_16_bit: int) -> None:
    shared = division(name, size)
    assert capacity.kv_bytes_per_token(shared, 0, "model") == kib_16_bit * 1024
    assert capacity.kv_bytes_per_token(shared, 0, "fp8_e4m3") == kib_16_bit * 512


def test_o_33_a_full_batch_is_weighed_against_the_memory() -> None:
    made = plan(
        "llama-2-7b", "a100x1", gpu="a100-40gb", weights="model", dtype="float16", max_batch_size=192, max_seq_len=4096
    )
    (said,) = [finding for finding in made.findings if finding.kind == "warning"]
    assert said.what.startswith("192 sequences of full length need 384 GiB of KV cache a GPU, and ")
    assert said.why == "524,288 B a token"
    assert made.memory is not None
    assert made.memory.pools["model"].sequences(4096) < 192


def test_repeated_kv_heads_cost_every_rank_one() -> None:
    per_rank = {size: capacity.kv_bytes_per_token(division("llama-3.1-8b", size), 0, "model") for size in (4, 8, 16)}
    assert per_rank[4] == 2 * per_rank[8]
    assert per_rank[16] == per_rank[8]


def test_weights_are_what_the_checkpoint_holds() -> None:
    """W4A16_AWQ of a layer of Llama-3.1-8B at TP 8, counted by hand."""
    held = weights.of_stage(division("llama-3.1-8b", 8), 0)
    linears = [(768, 4096), (4096, 512), (1792, 4096), (1792, 4096), (4096, 1792)]
    assert held.linear_bytes == 32 * sum(rows * columns // 2 for rows, columns in linears)
    assert held.scale_bytes == 32 * 2 * sum(rows * columns // 128 + columns for rows, columns in linears)
    assert held.unquantized_bytes == 2 * (2 * 16032 * 4096 + 65 * 4096)


def test_zero_points_and_biases_are_counted() -> None:
    plain, biased = (weights.of_stage(division(name, 4), 0) for name in ("llama-3.1-8b", "qwen2.5-7b"))
    assert biased.unquantized_bytes - 2 * (2 * 38016 * 3584 + 57 * 3584) == 2 * 28 * 9 * 128
    zeros = weights.of_stage(division("llama-3.1-8b", 4, format_="w4a16_gptq"), 0)
    inputs = 32 * 2 * (4096 + 1024 + 4096 + 4096 + 3584)
    assert zeros.scale_bytes == 2 * (plain.scale_bytes - inputs)


def test_the_stage_with_most_in_it_decides() -> None:
    staged = division("qwen2.5-7b", stages=3)
    held = [weights.of_stage(staged, stage) for stage in range(3)]
    assert held[0].linear_bytes == held[1].linear_bytes * 10 // 9
    assert held[1].unquantized_bytes < held[2].unquantized_bytes
    free = [10 * GIB, 10 * GIB, 9 * GIB]
    made = capacity.pool(staged, "model", free_bytes=free, share=0.5, block_tokens=32)
    each = [int(size * 0.5) // capacity.kv_bytes_per_token(staged, stage, "model") for stage, size in enumerate(free)]
    assert made.tokens == min(each)


@given(free=st.integers(0, 200 * GIB), more=st.integers(0, GIB), share=st.floats(0.1, 0.95))
def test_more_memory_never_holds_less(free: int, more: int, share: float) -> None:
    shared = division("qwen2.5-72b", 8)
    less, larger = (
        capacity.pool(shared, "model", free_bytes=[size], share=share, block_tokens=32) for size in (free, free + more)
    )
    assert less.tokens <= larger.tokens
    assert less.blocks <= larger.blocks
    assert less.tokens * less.bytes_per_token <= free
    assert 0 <= less.blocks * 32 - less.tokens < 32


@given(tokens=st.integers(1, 10**6), block=st.sampled_from([16, 32, 64, 128]))
def test_sequences_have_whole_blocks(tokens: int, block: int) -> None:
    made = capacity.pool(division("llama-3.1-8b"), "int8", free_bytes=[40 * GIB], share=0.9, block_tokens=block)
    count = made.sequences(tokens)
    assert count * -(-tokens // block) <= made.blocks < (count + 1) * -(-tokens // block)
    assert made.sequences(tokens + 1) <= count


@given(size=st.sampled_from([1, 2, 4, 8]), stages=st.integers(1, 8), kv=st.sampled_from(KV_DTYPES))
def test_all_ranks_together_hold_the_models_kv(size: int, stages: int, kv: Any) -> None:
    """Llama-3.1-70B: 8 KV heads, so that TP up to 8 repeats none; stages share the layers."""
    shared = division("llama-3.1-70b", size, stages=stages)
    held = sum(capacity.kv_bytes_per_token(shared, stage, kv) for stage in range(stages))
    assert held * size == 2 * 80 * 8 * 128 * (2 if kv == "model" else 1)


@given(size=st.sampled_from([1, 2, 4, 8]))
def test_ranks_together_hold_all_linears_and_no_less(size: int) -> None:
    whole, part = (weights.of_stage(division("llama-3.1-70b", count), 0) for count in (1, size))
    assert part.linear_bytes * size == whole.linear_bytes
    assert part.total_bytes * size >= whole.total_bytes


@given(tokens=st.integers(1, 10**5), batch=st.integers(1, 2048))
def test_activations_grow_with_tokens_and_requests(tokens: int, batch: int) -> None:
    shared = division("qwen2.5-72b", 8)

    def needed(tokens: int, batch: int) -> int:
        return capacity.activation_bytes(shared, max_num_tokens=tokens, max_batch_size=batch)

    assert needed(tokens, batch) < needed(tokens + 1, batch)
    assert needed(tokens, batch) < needed(tokens, batch + 1)
