"""Plans of public models on the repository's targets: the right verdict each, and every figure in the document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from planning import TARGETS, lengths, of_kind, plan, refused
from trtpipe.engines.trtllm.capability import KV_DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtpipe.engines.trtllm.lengths import Lengths

LEGAL: list[str] = []
NO_AWQ = "W4A16_AWQ is not listed for `phi3`"
NO_TP = "tensor parallelism is not listed for `phi3`"
# 28 heads at TP 8, and no width of 3584 in groups of 128 for 8 ranks
QWEN_7B_AT_TP_8 = [
    "28 attention heads cannot be shared by TP 8: 4 are left over",
    "the hidden size 3584 is no multiple of 1024 (group size 128 x TP 8): 448 a rank, 3.5 groups",
    "the width of all attention heads 3584 is no multiple of 1024 (group size 128 x TP 8): 448 a rank, 3.5 groups",
    "the width of q, k and v 5632 is no multiple of 1024 (group size 128 x TP 8): 704 a rank, 5.5 groups",
]
# model -> what is refused on a100x8, a100x8-reuse, a100x1, h200, l40s
VERDICTS = {
    "qwen2.5-72b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "qwen2.5-32b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "qwen2.5-14b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "qwen2.5-7b": (QWEN_7B_AT_TP_8, QWEN_7B_AT_TP_8, LEGAL, LEGAL, LEGAL),
    "llama-3.1-70b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "llama-3.1-8b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "llama-2-7b": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "mistral-7b-v0.3": (LEGAL, LEGAL, LEGAL, LEGAL, LEGAL),
    "phi-3-mini-4k": ([NO_AWQ, NO_TP], [NO_AWQ, NO_TP], [NO_AWQ], [NO_AWQ], [NO_AWQ]),
}
PADDED = {("qwen2.5-72b", 8): 29696, ("qwen2.5-14b", 8): 14336, ("llama-2-7b", 8): 11264, ("qwen2.5-7b", 8): 19456}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", VERDICTS)
def test_the_verdict(model: str, target: str) -> None:
    made = plan(model, target)
    assert refused(made) == VERDICTS[model][TARGETS.index(target)]
    size = made.target.tensor_parallel
    assert made.division.intermediate == PADDED.get((model, size), made.division.shape.intermediate)
    off = [finding.what for finding in of_kind(made, "changed")]
    assert off == (["W4A16_AWQ with FP8 KV cache: paged context FMHA is switched off"] if target == "a100x8" else [])


@pytest.mark.parametrize("log", [None, lengths(3000)], ids=["no-log", "log"])
@pytest.mark.parametrize("target", TARGETS)
def test_memory_is_counted_with_the_batch_that_is_chosen(target: str, log: Lengths | None) -> None:
    """What is chosen holds for itself: given in the target, it gives the same memory; twice as many is not fed."""
    for model in ("qwen2.5-72b", "qwen2.5-32b", "llama-3.1-8b"):
        made = plan(model, target, lengths=log)
        if made.limits is None:
            continue
        size = made.limits.batch_size
        assert plan(model, target, lengths=log, max_batch_size=size).memory == made.memory
        doubled = plan(model, target, lengths=log, max_batch_size=2 * size)
        assert doubled.memory is not None
        assert doubled.limits is not None
        typical = doubled.limits.seq_len if log is None else log.sequence_tokens("p50", 1024)
        assert size == 512 or doubled.memory.pools[made.target.kv_dtype].sequences(typical) < 2 * size


def test_a_batch_of_one_leaves_qwen_72b_room_on_one_l40s() -> None:
    """With buffers for 512 requests it had 7,217 tokens, and was refused."""
    made = plan("qwen2.5-72b", "l40s")
    assert made.memory is not None
    assert made.limits is not None
    assert (made.limits.batch_size, made.memory.pools["model"].tokens) == (1, 8925)
    assert made.limits.batch_size_why == ("beside the buffers for 1, the KV cache holds 1 sequences of full length")
    assert refused(plan("qwen2.5-72b", "l40s", max_batch_size=512))[0].startswith("the KV cache holds 7,217 tokens")


def test_no_batch_takes_the_room_of_a_full_sequence() -> None:
    """Sequences of the log's median length would fill 8 places, whose buffers leave too little for the longest."""
    made = plan("qwen2.5-72b", "l40s", lengths=lengths(7880, median=500), max_seq_len=8912)
    assert made.limits is not None
    assert (refused(made), made.limits.batch_size) == ([], 4)


def test_the_verdicts_as_a_table(golden: Callable[[str, str], None]) -> None:
    """What a reader compares: each public model on each target, as `trtpipe plan` decides it."""
    lines = [f"{'model':16}{'target':15}{'verdict':10}{'MLP':>7}{'KV B a token':>14}{'KV tokens':>12}  said"]
    for model in VERDICTS:
        for target in TARGETS:
            made = plan(model, target)
            kv = made.kv_document(made.target.kv_dtype)
            figures = [kv.get(key) for key in ("bytes_per_token_per_rank", "tokens")]
            per_token, tokens = ("-" if figure is None else f"{figure:,}" for figure in figures)
            said = [finding.what for finding in made.findings if finding.kind in ("refused", "changed")]
            verdict = "refused" if made.refusals else "legal"
            first = f"{model:16}{target:15}{verdict:10}{made.division.intermediate:>7}{per_token:>14}{tokens:>12}"
            lines.append(f"{first}  {said[0] if said else ''}".rstrip())
            lines += [f"{'':76}{more}" for more in said[1:]]
    golden("plan/verdicts.txt", "\n".join(lines) + "\n")


def test_qwen_72b_on_eight_a100() -> None:
    document = plan("qwen2.5-72b", "a100x8").document()
    kv = {row["kv_dtype"]: row for row in document["kv"]}
    assert kv["fp8_e4m3"]["bytes_per_token_per_rank"] == 20_480
    assert kv["model"]["bytes_per_token_per_rank"] == 40_960
    assert document["division"]["intermediate"] == 29_696
    assert document["division"]["kv_heads_per_rank"] == 1
    assert (kv["fp8_e4m3"]["kv_reuse"], kv["fp8_e4m3"]["chunked_context"]) == (False, False)
    assert "FP8 context FMHA" in kv["fp8_e4m3"]["why"]
    assert (kv["model"]["kv_reuse"], kv["model"]["chunked_context"], kv["model"]["why"]) == (True, True, "")
    assert kv["fp8_e4m3"]["tokens"] == pytest.approx(2 * kv["model"]["tokens"], abs=1)
    assert document["legal"]


def test_kv_types_stand_side_by_side_with_the_logs_sequences() -> None:
    made = plan("llama-3.1-70b", "a100x8-reuse", lengths=lengths(4000, median=600, answer=300))
    rows = [made.kv_document(kv) for kv in KV_DTYPES]
    assert [row["kv_dtype"] for row in rows] == ["model", "fp8_e4m3", "int8"]
    for row in rows:
        assert row["blocks"] == -(-row["tokens"] // 32)
        assert row["p50_sequences"] == row["blocks"] // -(-900 // 32)
        assert row["p95_sequences"] == row["blocks"] // -(-2300 // 32)
        assert row["full_length_sequences"] <= row["p95_sequences"] <= row["p50_sequences"]


def test_a_plan_of_what_cannot_be_shared_counts_nothing() -> None:
    document = plan("qwen2.5-7b", "a100x8").document()
    assert (document["memory"], document["limits"], document["legal"]) == (None, None, False)
    assert "tokens" not in document["kv"][0]


def test_refusals_come_first_and_all_at_once() -> None:
    made = plan("qwen2.5-7b", "a100x8-reuse", kv_dtype="int8", speculative_mode="medusa", draft_tokens_max=2)
    kinds = [finding.kind for finding in made.findings]
    assert kinds == sorted(kinds, key=["refused", "changed", "warning", "note"].index)
    # besides: the MLP (no INT8 KV cache is exported, so nothing pads), reuse and chunking under INT8, Medusa twice
    assert kinds.count("refused") == len(QWEN_7B_AT_TP_8) + 4


def test_the_document_is_json_and_adds_up() -> None:
    document = json.loads(json.dumps(plan("qwen2.5-72b", "a100x8", lengths=lengths(3000)).document()))
    memory = document["memory"]
    (held,) = memory["weights_per_rank"]
    assert held["total_bytes"] == held["linear_bytes"] + held["scale_bytes"] + held["unquantized_bytes"]
    taken = held["total_bytes"] + memory["activation_bytes"] + memory["runtime_bytes"]
    assert memory["free_bytes"] == [memory["gpu_bytes"] - taken]
    fp8 = document["kv"][1]
    assert fp8["tokens"] == int(memory["free_bytes"][0] * 0.9) // fp8["bytes_per_token_per_rank"]
    assert document["limits"]["max_seq_len"]["value"] == 4032
    assert document["quant_algo"] == "W4A16_AWQ"
    assert document["lengths"]["prompt"]["max"] == 3000


def test_every_finding_says_why_or_what_to_do() -> None:
    for model in VERDICTS:
        for target in TARGETS:
            for finding in plan(model, target).findings:
                assert finding.where
                assert finding.why or finding.fix or finding.cost
