"""How ranks share a model out: widths, padding, legal TP sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import plan, refused, shape
from trtpipe.engines.trtllm.division import GROUP_SIZES, Division, legal_sizes, legal_text, padded
from trtpipe.engines.trtllm.shape import DecoderShape

SIZES = st.sampled_from([1, 2, 4, 8])


def division(name: str, size: int, *, pad: bool = False, group: int = 128, weights: str = "w4a16_awq") -> Division:
    return Division(shape(name), weights, group, size, 1, pad)


def test_o_14_an_intermediate_size_of_231_groups_is_padded_or_refused() -> None:
    sizes = legal_sizes(shape("qwen2.5-72b"), "w4a16_awq", pad=False)
    assert (sizes[128], sizes[64]) == ([1], [1, 2])
    assert legal_sizes(shape("qwen2.5-72b"), "w4a16_awq", pad=True)[128] == [1, 2, 4, 8]
    for size in (2, 4, 8):
        (said,) = plan("qwen2.5-72b", "a100x8", tensor_parallel=size, pad_intermediate=False).refusals
        assert said.what.startswith(f"the intermediate size 29568 is no multiple of {128 * size}")
        assert said.fix is not None
        assert "legal: group 128: TP 1; group 64: TP 1, 2" in said.fix
        assert "pad_intermediate: true: widened with zeros to 29696, 0.4% more MLP" in said.fix
        made = plan("qwen2.5-72b", "a100x8", tensor_parallel=size)
        assert (refused(made), made.division.intermediate) == ([], 29696)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a100x8", {"kv_dtype": "int8"}),
        ("h200", {"weights": "w4a8_awq", "tensor_parallel": 8}),
        ("h200", {"weights": "w4a16_awq", "kv_dtype": "int8", "tensor_parallel": 4, "kv_reuse": False,
                  "chunked_context": False}),
    ],
)  # fmt: skip
def test_padding_counts_only_where_the_export_writes_the_checkpoint(name: str, changes: dict[str, Any]) -> None:
    made = plan("qwen2.5-72b", name, pad_intermediate=True, **changes)
    (said,) = [one for one in made.refusals if "intermediate size" in one.what]
    assert said.what.startswith("the intermediate size 29568 is no multiple of ")
    assert "pad_intermediate has no effect: upstream's scripts make this checkpoint" in str(said.why)
    assert str(said.fix).startswith("legal: group 128: TP 1")
    assert str(said.fix).endswith(
        "; or weights: w4a16_awq with kv_dtype: model or fp8_e4m3, of Llama or Qwen2, which pad_intermediate: true "
        "widens with zeros"
    )
    assert made.division.intermediate == 29568
    assert not any("becomes" in one.what for one in made.findings)


def test_a_family_that_the_export_does_not_know_is_not_widened() -> None:
    wide = {"model_type": "mistral", "intermediate_size": 14336 + 128}
    assert refused(plan("llama-3.1-8b", "a100x8", changes=wide)) != []
    assert refused(plan("llama-3.1-8b", "a100x8", changes=wide | {"model_type": "llama"})) == []


def test_o_15_half_a_group_a_rank_is_refused_with_the_table() -> None:
    sizes = legal_sizes(shape("llama-2-7b"), "w4a16_awq", pad=False)
    assert sizes == {128: [1, 2], 64: [1, 2, 4]}
    (said,) = refused(plan("llama-2-7b", "a100x1", tensor_parallel=4))
    assert said.endswith("2752 a rank, 21.5 groups")


def test_o_16_group_64_goes_where_group_128_does_not() -> None:
    assert legal_sizes(shape("qwen2.5-14b"), "w4a16_awq", pad=False) == {128: [1, 2, 4], 64: [1, 2, 4, 8]}
    made = plan("qwen2.5-14b", "a100x1", tensor_parallel=8)
    assert made.refusals[0].fix is not None
    assert "group 64: TP 1, 2, 4, 8" in made.refusals[0].fix
    assert refused(plan("qwen2.5-14b", "a100x1", tensor_parallel=8, group_size=64)) == []


def test_o_24_a_stated_head_width_decides() -> None:
    wide = {"hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128}
    assert Division(shape("llama-3.1-70b", **wide), "w4a16_awq", 128, 1, 1, pad=False).qkv_width == 10240


def test_o_25_a_head_width_without_a_kernel_is_refused() -> None:
    made = plan("llama-2-7b", "a100x1", changes={"hidden_size": 3200, "intermediate_size": 8704})
    said = next(finding for finding in made.refusals if "head width" in finding.what)
    assert said.what == "the engine has no attention kernel for a head width of 100"
    assert said.why is not None
    assert said.why.startswith("supported: 32, 48, 64, 80, 96, 104, 112, 128,")


def test_o_26_the_padded_vocabulary_is_told_and_never_sampled() -> None:
    wide = Division(shape("llama-2-7b", vocab_size=32016), "model", 128, 64, 1, pad=False)
    assert wide.vocabulary == padded(32016, 64) == 32064
    made = plan("llama-3.1-8b", "a100x8", changes={"vocab_size": 128259})
    (said,) = [finding for finding in made.findings if "vocabulary" in finding.what]
    assert said.what == "the vocabulary of 128259 becomes 128264: 5 zero rows in embedding and head"
    assert said.cost is not None
    assert "ids 128259 to 128263 are never sampled" in said.cost
    assert made.division.vocabulary == 128264


def test_o_27_heads_that_do_not_divide_are_refused_with_what_does() -> None:
    made = plan("qwen2.5-7b", "a100x8")
    assert made.refusals[0].what == "28 attention heads cannot be shared by TP 8: 4 are left over"
    assert made.refusals[0].fix == "legal: group 128: TP 1, 2, 4; group 64: TP 1, 2, 4"
    (repeated,) = [finding for finding in made.findings if "KV heads stands" in finding.what]
    assert repeated.what == "each of 4 KV heads stands on 2 ranks"
    for size in (7, 14):  # both divide 28 heads
        assert refused(plan("qwen2.5-7b", "a100x8", tensor_parallel=size))[0] == (
            f"4 KV heads can neither be shared nor repeated by TP {size}"
        )


def test_awq_of_autoawq_is_widened_by_the_engine_itself() -> None:
    made = plan("qwen2.5-72b", "a100x8-reuse", weights="w4a16_gptq", pad_intermediate=False)
    assert refused(made) == []
    assert made.division.intermediate == 29696


@pytest.mark.parametrize(("weights", "size", "legal"), [("model", 8, True), ("fp8", 8, True), ("w4a16_awq", 8, False)])
def test_formats_without_groups_only_need_the_ranks_to_share_alike(weights: str, size: int, *, legal: bool) -> None:
    assert division("qwen2.5-14b", size, weights=weights).is_legal is legal


def test_w4a8_has_no_group_of_64() -> None:
    assert legal_text(shape("llama-3.1-8b"), "w4a8_awq", pad=False) == "group 128: TP 1, 2, 4, 8"
    made = plan("llama-3.1-8b", "h200", weights="w4a8_awq", group_size=64)
    assert "W4A8_AWQ has no kernel for group size 64" in refused(made)


def test_pipeline_stages_share_layers_and_pad_the_vocabulary_alike() -> None:
    staged = Division(shape("qwen2.5-7b"), "w4a16_awq", 128, 1, 3, pad=False)
    assert [len(staged.layers_of(stage)) for stage in range(3)] == [10, 9, 9]
    odd = plan("llama-3.1-8b", "a100x8", changes={"vocab_size": 128264}, pipeline_parallel=2)
    assert [said for said in refused(odd) if "vocabulary" in said] == [
        "the vocabulary of 128264 is padded to 128264 by the head and to 128272 by the runtime"
    ]
    many = plan("llama-3.1-8b", "a100x1", pipeline_parallel=33)
    assert "32 layers are too few for 33 pipeline stages" in refused(many)


@pytest.mark.parametrize(("size", "stages"), [(8, 2), (16, 1), (4, 3)])
def test_more_gpus_than_a_node_has_are_refused_because_launch_knows_one(size: int, stages: int) -> None:
    made = plan("llama-3.1-70b", "a100x8", tensor_parallel=size, pipeline_parallel=stages)
    (said,) = [one for one in made.refusals if "GPUs" in one.what]
    assert said.what == f"TP {size} x PP {stages} are {size * stages} GPUs, and one node has 8"
    assert "launching over several nodes is not supported" in str(said.why)
    assert refused(plan("llama-3.1-70b", "a100x8", tensor_parallel=4, pipeline_parallel=2)) == []


@given(width=st.integers(1, 10**6), multiple=st.integers(1, 10**4))
def test_padding_is_the_next_multiple(width: int, multiple: int) -> None:
    assert padded(width, multiple) % multiple == 0
    assert 0 <= padded(width, multiple) - width < multiple


@given(
    groups=st.integers(1, 400), heads=st.integers(1, 12), kv_heads=SIZES, size=SIZES,
    group=st.sampled_from(GROUP_SIZES),
)  # fmt: skip
def test_padding_makes_every_rank_hold_whole_groups(
    groups: int, heads: int, kv_heads: int, size: int, group: int
) -> None:
    heads *= 8
    made = DecoderShape(heads * 128, groups * group, heads, kv_heads, 128, 1000, 4, "llama", 4096, None, False, False)
    wide = Division(made, "w4a16_awq", group, size, 1, pad=True)
    assert wide.intermediate % (group * size) == 0
    assert wide.intermediate - made.intermediate < group * size
    assert wide.is_legal


@given(layers=st.integers(1, 200), stages=st.integers(1, 16))
def test_stages_hold_all_layers_and_differ_by_one(layers: int, stages: int) -> None:
    made = DecoderShape(1024, 1024, 8, 8, 128, 1000, layers, "llama", 4096, None, False, False)
    held = [len(Division(made, "model", 128, 1, stages, pad=False).layers_of(stage)) for stage in range(stages)]
    assert sum(held) == layers
    assert max(held) - min(held) <= 1
