"""Asked for against got, flag by flag."""

from __future__ import annotations

from typing import Any

import pytest

from planning import plan
from trtpipe.engines.trtllm.build import chosen, grammar
from trtpipe.engines.trtllm.built import compare
from trtpipe.engines.trtllm.built.kv_cost import KvCost

ASKED = chosen.arguments(plan("qwen2.5-72b", "a100x8"))
SWITCHES = {"enable": True, "disable": False}


def recorded() -> dict[str, Any]:
    """Return a config.json that has what was asked for, in upstream's forms."""
    config: dict[str, Any] = {"pretrained_config": {"dtype": "bfloat16"}, "build_config": {"plugin_config": {}}}
    for name, argument in grammar.grammar().items():
        if argument.recorded is None or name not in ASKED:
            continue
        value: Any = ASKED[name]
        if argument.kind == "switch":
            value = SWITCHES[value]
        elif argument.kind == "plugin":
            value = None if value == "disable" else value
        *parts, last = argument.recorded.split(".")
        node = config
        for part in parts:
            node = node[part]
        node[last] = value
    return config


def test_an_engine_as_asked_for_has_no_difference() -> None:
    config = recorded()
    assert list(compare.differences(ASKED, config)) == []
    plugins = config["build_config"]["plugin_config"]
    assert plugins["gemm_plugin"] == "auto"
    plugins["gemm_plugin"] = "bfloat16"  # the dataclass of older lines resolved `auto`
    config["build_config"]["kv_cache_type"] = "PAGED"  # its name, where older lines wrote that and not its value
    assert list(compare.differences(ASKED, config)) == []


NAMES = [name for name, one in grammar.grammar().items() if one.recorded and name in ASKED and one.kind != "path"]


@pytest.mark.parametrize("name", NAMES)
def test_each_flag_that_differs_or_is_not_recorded_is_found_with_its_cost(name: str) -> None:
    argument = grammar.grammar()[name]
    assert argument.recorded is not None
    for how in ("other", "missing"):
        config = recorded()
        *parts, last = argument.recorded.split(".")
        node = config
        for part in parts:
            node = node[part]
        if how == "missing":
            del node[last]
        else:
            node[last] = "something else"
        (finding,) = compare.findings(compare.differences(ASKED, config), (), "config.json", None)
        assert finding.kind == "refused"
        assert finding.what.startswith(f"{name} is ")
        assert finding.cost
        assert f"accepted_changes: [{name}]" in str(finding.fix)
        (accepted,) = compare.findings(compare.differences(ASKED, config), [name], "config.json", None)
        assert (accepted.kind, accepted.fix) == ("changed", None)


MADE = plan("qwen2.5-72b", "a100x8", max_batch_size=64, max_num_tokens=8192, max_seq_len=8192)
KV = KvCost(MADE.division, MADE.target, MADE.gpu, chosen.arguments(MADE))


def held(**changes: Any) -> str:
    """Return what the plan itself says of the KV cache."""
    given = {"max_batch_size": 64, "max_num_tokens": 8192, "max_seq_len": 8192} | changes
    made = plan("qwen2.5-72b", "a100x8", **given)
    assert made.memory is not None
    pool = made.memory.pools[made.target.kv_dtype]
    sequences = pool.sequences(given["max_seq_len"])
    return (
        f"{pool.blocks:,} KV blocks of {pool.block_tokens} ({pool.tokens:,} tokens, {sequences:,} sequences of "
        "max_seq_len)"
    )


@pytest.mark.parametrize(
    ("name", "got", "key"),
    [
        ("max_batch_size", 512, "max_batch_size"),
        ("max_num_tokens", 16384, "max_num_tokens"),
        ("max_seq_len", 4096, "max_seq_len"),
        ("tokens_per_block", 128, "kv_block_tokens"),
    ],
)
def test_the_cost_is_counted_in_blocks_as_the_plan_counts_them(name: str, got: int, key: str) -> None:
    said = KV.of(name, got)
    assert said == f"{held(**{key: got})} instead of {held()}, as planned"
    assert held(**{key: got}) != held()
    (finding,) = compare.findings(compare.between({name: 1}, {name: got}), (), "x", KV)
    assert finding.cost == f"{compare.COSTS[name]}; {said}"


def test_what_changes_no_block_says_so_in_words_alone() -> None:
    assert KV.of("multiple_profiles", False) is None
    assert KV.of("max_batch_size", compare.MISSING) is None
    assert KV.of("use_paged_context_fmha", False) == (
        f"none of the {held().partition(' ')[0]} KV blocks planned is ever reused"
    )
    assert KV.of_kv_dtype("FP8") == f"{held()} instead of {held()}, as planned"
    assert KV.of_kv_dtype(None) == f"{held(kv_dtype='model')} instead of {held()}, as planned"


def test_names_whose_effect_no_engine_records_can_not_be_accepted() -> None:
    assert compare.unknown_names(["max_seq_len", "max_seqlen", "workers"]) == ["max_seqlen", "workers"]
