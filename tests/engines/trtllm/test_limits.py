"""Limits to build with: from the target, else from the log and the memory, and each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planning import lengths, of_kind, plan, refused

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.limits import Limits
    from trtpipe.engines.trtllm.plan import Plan


def limits(made: Plan) -> Limits:
    assert made.limits is not None
    return made.limits


def test_o_29_a_prompt_longer_than_a_step_is_refused_with_two_ways_out() -> None:
    log = lengths(9000)
    made = plan("qwen2.5-72b", "a100x8", lengths=log, max_num_tokens=8192)
    (said,) = made.refusals
    assert said.what == "the log's longest prompt has 9,000 tokens, and a step takes 8,192"
    assert said.fix == (
        "max_num_tokens: 9000 or more, at the price of activation memory; or chunked_context: true, which needs paged "
        "context FMHA (kv_dtype: model)"
    )
    assert refused(plan("qwen2.5-72b", "a100x8", lengths=log)) == []
    assert refused(plan("qwen2.5-72b", "a100x8-reuse", lengths=log, max_num_tokens=8192)) == []


def test_the_log_decides_how_long_sequences_are() -> None:
    made = limits(plan("qwen2.5-72b", "a100x8-reuse", lengths=lengths(3000)))
    assert made.seq_len == 4032  # 3000 + 1024, in blocks of 32
    assert made.seq_len_why == "the log's longest prompt (3,000 tokens) and an answer of 1,024, in whole KV blocks"
    longer = limits(plan("qwen2.5-72b", "a100x8-reuse", lengths=lengths(3000, answer=2000)))
    assert longer.seq_len == 5024
    capped = limits(plan("llama-2-7b", "a100x1", lengths=lengths(4000)))
    assert capped.seq_len == 4096
    assert capped.seq_len_why.startswith("the model's context; ")


def test_without_a_log_the_length_is_an_assumption_and_said_to_be_one() -> None:
    made = limits(plan("qwen2.5-72b", "a100x8"))
    assert (made.seq_len, made.seq_len_why) == (
        8192, "no length profile was given: an assumption (give --profile)"
    )  # fmt: skip
    assert limits(plan("llama-2-7b", "a100x1")).seq_len == 4096


def test_a_step_holds_a_whole_prompt_where_it_cannot_be_cut() -> None:
    log = lengths(20_000)
    whole, cut = (limits(plan("qwen2.5-72b", name, lengths=log)) for name in ("a100x8", "a100x8-reuse"))
    assert whole.num_tokens == whole.seq_len == 21024
    assert cut.num_tokens == 8192
    warned = of_kind(plan("qwen2.5-72b", "a100x8", lengths=log), "warning")
    assert "max_num_tokens 21,024 is above 16,384" in [finding.what for finding in warned]


def test_a_step_that_trtllm_build_would_cut_is_told() -> None:
    made = plan("llama-2-7b", "a100x1", max_batch_size=2, max_seq_len=2048, max_num_tokens=8192)
    assert [finding.what for finding in of_kind(made, "changed")] == ["max_num_tokens 8,192 becomes 4,096"]
    small = limits(plan("qwen2.5-72b", "l40s", max_seq_len=4096, max_batch_size="auto"))
    assert (small.batch_size, small.num_tokens) == (2, 8192)
    one = limits(plan("qwen2.5-72b", "l40s", max_seq_len=5000))
    assert (one.batch_size, one.num_tokens) == (1, 5000)


@pytest.mark.parametrize(
    ("target", "log", "size"),
    [
        ("a100x8", None, 256),  # 408 full sequences fit
        ("a100x8", lengths(2000, median=300, answer=200), 512),  # thousands fit; 512 is the most
        ("l40s", None, 64),
    ],
)
def test_the_batch_is_what_the_kv_cache_feeds(target: str, log: Any, size: int) -> None:
    name = "qwen2.5-7b" if target == "l40s" else "qwen2.5-72b"
    made = plan(name, target, lengths=log)
    chosen = limits(made)
    assert chosen.batch_size == size
    assert made.memory is not None
    typical = chosen.seq_len if log is None else log.sequence_tokens("p50", 1024)
    fits = made.memory.pools[made.target.kv_dtype].sequences(typical)
    assert f"holds {fits:,} sequences" in chosen.batch_size_why
    assert size <= fits
    assert fits < 2 * size or size == 512


def test_what_the_target_says_is_taken() -> None:
    made = limits(plan("qwen2.5-72b", "a100x8", max_batch_size=48, max_num_tokens=9000, max_seq_len=7000))
    assert (made.batch_size, made.num_tokens, made.seq_len) == (48, 9000, 7000)
    assert {made.batch_size_why, made.num_tokens_why, made.seq_len_why} == {"the target says so"}


def test_limits_beyond_the_model_or_below_the_log_are_warned_of() -> None:
    beyond = plan("llama-2-7b", "a100x1", max_seq_len=8192)
    assert "max_seq_len 8,192 is beyond the model's context of 4,096" in [one.what for one in beyond.findings]
    below = plan("qwen2.5-72b", "a100x8-reuse", lengths=lengths(9000), max_seq_len=8192)
    assert "the log's longest prompt has 9,000 tokens, max_seq_len is 8,192" in [one.what for one in below.findings]
    step = plan("qwen2.5-72b", "a100x8", max_seq_len=16384, max_num_tokens=8192)
    assert [finding.what for finding in of_kind(step, "warning")][-1].startswith("prompts of 8,193 tokens and more")


def test_an_engine_that_does_not_fit_is_refused_with_one_that_does() -> None:
    (said,) = plan("llama-3.1-70b", "a100x1", weights="model").refusals
    assert said.what.startswith("the engine does not fit: 13")
    assert said.fix == "tensor_parallel: 2; or a larger GPU, or a smaller max_num_tokens"
    (short,) = plan("qwen2.5-72b", "l40s", max_seq_len=9440).refusals
    assert short.what.startswith("the KV cache holds 8,")
    assert short.fix is not None
    assert "tensor_parallel: 2, pad_intermediate: true; or a larger GPU" in short.fix
    none = plan("llama-3.1-70b", "l40s", gpu="l4", weights="model", changes={"num_hidden_layers": 160}).refusals[0]
    assert none.fix is not None
    assert none.fix.startswith("no larger TP size that is legal on one node fits")
    phi = plan("phi-3-mini-4k", "a100x1", gpu="l4", weights="model", changes={"num_hidden_layers": 120}).refusals[0]
    assert "does not fit" in phi.what
    assert phi.fix == none.fix, "TP is not listed for Phi-3: none is advised"


def test_a_measured_reserve_replaces_the_estimate() -> None:
    made = plan("llama-3.1-8b", "a100x8", runtime_reserve_mib=100)
    assert made.memory is not None
    assert made.memory.reserve.runtime_bytes == 100 << 20
    estimate = plan("llama-3.1-8b", "a100x8").memory
    assert estimate is not None
    assert estimate.reserve.runtime_bytes == 3072 << 20
