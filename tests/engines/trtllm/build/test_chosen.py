"""From a plan to arguments, and what the builder would make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planning import TARGETS, plan
from trtpipe.core import environment
from trtpipe.engines.trtllm.build import chosen, grammar, rewrites, workers
from trtpipe.engines.trtllm.built import compare
from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.plan import Plan

GIB = 1 << 30


def changed(made: Plan) -> list[str]:
    asked = chosen.arguments(made)
    return [one.argument.name for one in compare.between(asked, rewrites.effective(asked, made))]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_changed_of_what_the_targets_ask_for(target: str) -> None:
    made = plan("llama-3.1-8b", target)
    assert not made.refusals
    assert changed(made) == []
    assert grammar.command(chosen.arguments(made))


@pytest.mark.parametrize(
    ("target", "paged", "fp8"),
    [("a100x8", "disable", "disable"), ("a100x8-reuse", "enable", "disable"), ("h200", "enable", "disable")],
)
def test_one_switch_of_the_target_decides_paged_context_fmha(target: str, paged: str, fp8: str) -> None:
    asked = chosen.arguments(plan("llama-3.1-70b", target, max_seq_len=2048))
    assert (asked["use_paged_context_fmha"], asked["use_fp8_context_fmha"]) == (paged, fp8)


def test_fp8_weights_with_an_fp8_cache_keep_reuse_and_ask_for_fp8_attention() -> None:
    made = plan("llama-3.1-8b", "h200", weights="fp8", kv_dtype="fp8_e4m3")
    asked = chosen.arguments(made)
    assert (asked["use_paged_context_fmha"], asked["use_fp8_context_fmha"], asked["gemm_plugin"]) == (
        "enable", "enable", "disable",
    )  # fmt: skip
    assert changed(made) == []


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"max_num_tokens": 9000, "max_batch_size": 1, "max_seq_len": 8192}, ["max_num_tokens"]),
        ({"speculative_mode": "lookahead_decoding", "draft_tokens_max": 7, "max_batch_size": 64}, ["max_seq_len"]),
        (
            {"speculative_mode": "lookahead_decoding", "draft_tokens_max": 255, "max_batch_size": 64},
            ["max_seq_len", "max_num_tokens"],
        ),
    ],
)
def test_changes_that_the_builder_would_make_are_foreseen(changes: dict[str, Any], names: list[str]) -> None:
    assert sorted(changed(plan("llama-3.1-8b", "a100x1", **changes))) == sorted(names)


def test_a_refused_plan_has_no_arguments() -> None:
    with pytest.raises(ValueError, match="refused"):
        chosen.arguments(plan("qwen2.5-7b", "a100x8"))


def test_workers_are_as_many_as_the_memory_holds() -> None:
    memory = plan("qwen2.5-72b", "a100x8").memory
    assert memory is not None
    each = workers.bytes_of_worker(memory)
    assert 12 * GIB < each < 24 * GIB
    assert workers.choose(8, each, 9 * each)[0] == 8
    count, why = workers.choose(8, each, 3 * each + 1)
    assert (count, why.startswith("3 workers for 8 ranks: each takes about")) == (3, True)
    with pytest.raises(EnvironmentUnfit, match="building one rank takes about"):
        workers.choose(8, each, each - 1)
    assert environment.free_memory_bytes() > 0
