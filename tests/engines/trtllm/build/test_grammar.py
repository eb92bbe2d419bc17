"""The argument grammar: upstream's rows, each with its source; values outside it are refused."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning import plan
from standins import trtllm_build as standin
from trtpipe.engines.trtllm.build import chosen, grammar
from trtpipe.engines.trtllm.built import folder
from trtpipe.errors import ConfigError, Problems

ROWS = grammar.grammar()


def test_every_row_names_the_upstream_file_it_was_checked_against() -> None:
    assert len(ROWS) == 67
    for row in ROWS.values():
        assert row.source.startswith("tensorrt_llm/"), row
        assert row.default is None or row.fault(row.default) is None, row


def test_what_becomes_of_an_argument_stands_where_the_engines_config_has_a_key() -> None:
    for row in ROWS.values():
        *part, key = (row.recorded or "").split(".")
        if part and part[0] == "build_config":
            assert key in folder.keys_of(part[-1]), row


def test_every_argument_is_given_or_left_out_for_a_reason() -> None:
    given_or_not = [*chosen.arguments(plan("qwen2.5-72b", "a100x8")), *chosen.PLACES, *chosen.OMITTED]
    assert sorted(given_or_not) == sorted({*given_or_not}), "none is both"
    assert ROWS.keys() - {*given_or_not} == {"speculative_decoding_mode"}, "given where the target has one"


@pytest.mark.parametrize(
    ("values", "said", "fix"),
    [
        ({"max_batchsize": 8}, "has no argument --max_batchsize", "did you mean --max_batch_size?"),
        ({"auto_parallel": 8}, "has no argument --auto_parallel", "leave it out"),
        ({"max_batch_size": "8"}, "--max_batch_size is `8`, and must be a whole number", "correct the value"),
        ({"max_batch_size": True}, "--max_batch_size is `True`", "correct the value"),
        ({"context_fmha": "on"}, "must be one of enable, disable", "correct the value"),
        ({"gemm_plugin": "int4"}, "must be one of auto, float16, float32, bfloat16, int32, fp8, nvfp4, disable", ""),
        ({"dry_run": False}, "must be a bare flag", "correct the value"),
        ({"checkpoint_dir": ""}, "must be a text", "correct the value"),
    ],
)
def test_what_upstreams_parser_would_refuse_is_refused(values: dict[str, str | int], said: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        grammar.command(values)
    assert said in caught.value.what
    assert fix in (caught.value.fix or "")


def test_all_problems_come_at_once() -> None:
    with pytest.raises(Problems) as caught:
        grammar.command({"max_batchsize": 8, "context_fmha": "on"})
    assert len(caught.value.problems) == 2


def value_of(row: grammar.Argument) -> st.SearchStrategy[grammar.Value]:
    if row.kind == "count":
        return st.integers(0, 10**6)
    if row.kind == "flag":
        return st.just(True)
    return st.sampled_from(row.values) if row.values else st.from_regex(r"[a-z/][a-z0-9/.]*", fullmatch=True)


ALL_VALUES = st.fixed_dictionaries({}, optional={name: value_of(row) for name, row in ROWS.items()})


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    standin.GRAMMAR = grammar.FILE
    return standin.parser()


@settings(deadline=None)  # other work may hold the cores
@given(values=ALL_VALUES)
def test_a_parser_of_upstreams_form_reads_back_what_was_written(
    parser: argparse.ArgumentParser, values: dict[str, grammar.Value]
) -> None:
    program, *words = grammar.command(values)
    read = parser.parse_args(words)
    assert program == "trtllm-build"
    for name, value in values.items():
        got = getattr(read, name)
        assert (got[0] if isinstance(got, list) else got) == value
