"""Lengths of a log: from what `trtpipe profile` writes, and from a prompt set's record."""

from __future__ import annotations

import json
from math import floor, log2
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.engines.trtllm.lengths import BINS_PER_OCTAVE, QUANTILES, read
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def profile(prompt: dict[str, int], answer: dict[str, int]) -> dict[str, Any]:
    def estimates(values: dict[str, int]) -> dict[str, Any]:
        return {name: {"value": value, "low": value, "high": value} for name, value in values.items()}

    lengths = {"prompt_tokens": estimates(prompt), "response_tokens": estimates(answer)}
    return {"profile": {"lengths": lengths, "prefix": {"reuse_share": 0.5}}}


PROMPT = {"p5": 10, "p50": 100, "p95": 900, "p99": 2000, "max": 4000}


def test_a_profile_is_read(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile(PROMPT, {})))
    found = read(path)
    assert (found.prompt["p50"], found.prompt["max"], found.answer, found.reuse_share) == (100, 4000, {}, 0.5)
    assert found.sequence_tokens("p95", 1024) == 900 + 1024
    path.write_text(json.dumps(profile(PROMPT, dict.fromkeys(PROMPT, 50))))
    assert read(path).sequence_tokens("p95", 1024) == 900 + 50


def test_a_records_bins_bound_the_lengths(tmp_path: Path) -> None:
    tokens = [10] * 60 + [100] * 35 + [900] * 5
    bins: dict[str, int] = {}
    for one in tokens:
        number = str(floor(BINS_PER_OCTAVE * log2(one)))
        bins[number] = bins.get(number, 0) + 1
    record = {"figures": {"reference": {"prompt_tokens": bins, "response_tokens": {}}}}
    (tmp_path / "record.json").write_text(json.dumps(record))
    found = read(tmp_path)
    assert found == read(tmp_path / "record.json")
    assert found.bounds
    assert found.reuse_share is None
    assert 10 <= found.prompt["p50"] <= 10 * 2 ** (1 / 4)
    assert 100 <= found.prompt["p95"] <= 100 * 2 ** (1 / 4)
    assert 900 <= found.prompt["max"] <= 900 * 2 ** (1 / 4)


@given(tokens=st.lists(st.integers(1, 10**6), min_size=1))
def test_a_bin_never_bounds_too_low(tokens: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    bins: dict[str, int] = {}
    for one in tokens:
        number = str(floor(BINS_PER_OCTAVE * log2(one)))
        bins[number] = bins.get(number, 0) + 1
    path = tmp_path_factory.mktemp("record") / "record.json"
    path.write_text(json.dumps({"figures": {"reference": {"prompt_tokens": bins, "response_tokens": bins}}}))
    found = read(path)
    assert found.prompt["max"] >= max(tokens)
    assert [found.prompt[name] for name in QUANTILES] == sorted(found.prompt.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no prompt lengths"),
        ("{}", "no prompt lengths"),
        ('{"profile": {"lengths": {}}}', "no prompt lengths"),
        (json.dumps(profile({}, {})), "no prompt lengths"),
        ('{"figures": {"reference": {"prompt_tokens": {"x": 1}, "response_tokens": {}}}}', "no prompt lengths"),
    ],
)
def test_what_holds_no_lengths_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"no length profile: .*{said}") as caught:
        read(path)
    assert caught.value.where == str(path)


def test_a_missing_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no length profile: No such file"):
        read(tmp_path / "profile.json")
    with pytest.raises(ConfigError, match="no length profile: No such file"):
        read(tmp_path)
