"""Each value that is not what the schema wants is told with its place, and with one that would be taken."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from config_files import CONFIG, TARGET, load, problems, write
from trtpipe.config.schema import Serving
from trtpipe.errors import ConfigError, UsageFault


@pytest.mark.parametrize(
    ("override", "what", "fix"),
    [
        ("modle=x", "unknown key `modle`", "did you mean `model`?"),
        ("prompts.sed=1", "unknown key `prompts.sed`", "did you mean `seed`?"),
        ("target.vllm=1", "unknown key `vllm`", "known keys: kind, weights, kv_dtype"),
        ("target.kv_pol_mib=1", "unknown key `kv_pol_mib`", "did you mean `kv_pool_mib`?"),
        ("target.gpu=a100", "unknown key `gpu`", "known keys"),
        ("policy.overall.kl=1", "unknown key `overall.kl`", "known keys: kl_top20_nats_max"),
        ("prompts={}", "`prompts.files` is missing", "add `files:` there"),
        ("prompts.files=[1]", "`prompts.files.0`: Input should be a valid string", "for instance --set"),
        ("target.threads=x", "`threads`: Input should be a valid integer; or Input should be 'auto'", ""),
        ("target.threads=0", "`threads`: Input should be greater than or equal to 1; or", ""),
        ("target.kind=x", "there is no engine kind `x`", "write `kind:` with one of vllm, tensorrt-llm"),
        ("target.kind=vlm", "there is no engine kind `vlm`", "did you mean `vllm`?"),
        ("target.kv_dtype=[fp8]", "`kv_dtype.0`: Input should be 'fp8_e4m3' or 'bfloat16'", ""),
        ("quantization.time_limit_s=1e999", "`quantization.time_limit_s`: Input should be a finite", ""),
        ("prompts.seed=true", "`prompts.seed`: Input should be a valid integer", ""),
        ("prompts.seed=18446744073709551616", "`prompts.seed`: Input should be less than", ""),
        ("target.prefix_caching=no", "`prefix_caching`: Input should be a valid boolean", ""),
    ],
)
def test_one_wrong_override(folder: Path, override: str, what: str, fix: str) -> None:
    (found,) = problems(folder, override)
    assert isinstance(found, ConfigError)
    assert found.what.startswith(what)
    assert found.fix is not None
    assert found.fix.startswith(fix)
    assert found.where == f"--set {override.partition('=')[0]}"


@pytest.mark.parametrize(
    ("override", "fix"),
    [
        ("prompts.files=a.jsonl", """--set 'prompts.files=["a.jsonl"]'"""),
        ("prompts.files=[1]", """--set 'prompts.files=["1"]'"""),
        ("prompts={files: a.jsonl}", """--set 'prompts={"files": ["a.jsonl"]}'"""),
        ("model=7", """--set 'model="7"'"""),
        ("target.kv_dtype=bfloat16", """--set 'target.kv_dtype=["bfloat16"]'"""),
        ("target.kv_dtype=[fp8]", """--set 'target.kv_dtype=["fp8_e4m3"]'"""),
        ("target.prefix_caching=no", "--set target.prefix_caching=true"),
        ("target.kv_pool_mib=much", "--set target.kv_pool_mib=256"),
        ("quantization.recipe=gptq", "--set quantization.recipe=awq+clip+round"),
        ("serving.http_port=80.5", "--set serving.http_port=8000"),
        ("prompts.seed=one", "--set prompts.seed=1"),
        ("prompts.columns=text", """--set 'prompts.columns={"prompt": "body.request"}'"""),
    ],
)
def test_a_value_of_another_form_is_told_with_an_example_that_is_taken(folder: Path, override: str, fix: str) -> None:
    (found,) = problems(folder, override)
    assert found.fix == f"for instance {fix}"
    (setting,) = shlex.split(fix)[1:]
    assert load(folder, setting)


def test_the_example_for_a_value_in_a_file_is_of_the_files_form(folder: Path) -> None:
    write(folder, config=CONFIG.replace("[a.jsonl]", "a.jsonl") + "serving: 8000\n", target=TARGET + "threads: many\n")
    assert [one.fix for one in problems(folder)] == [
        'for instance `files: ["a.jsonl"]`',
        f"it is a section, with the keys {', '.join(Serving.model_fields)}",
        "for instance `threads: auto`",
    ]


def test_an_element_of_a_list_cannot_be_set_alone(folder: Path) -> None:
    (found,) = problems(folder, "prompts.files.0=x")
    assert found.fix == """a list is given whole, as in --set 'prompts.files=["x"]'"""


def test_a_target_without_kind_is_told_in_plain_words(folder: Path) -> None:
    (folder / "engine.yaml").write_text("weights: w4a16\n")
    (found,) = problems(folder)
    assert found.what == "the target does not say which engine: `kind` is missing"
    assert found.where == f"{folder / 'engine.yaml'}:1:1"


@pytest.mark.parametrize("override", ["seed", "=1", "prompts.files.0=x", "policy.why.deeper=1"])
def test_an_override_that_fits_nowhere_is_a_usage_fault(folder: Path, override: str) -> None:
    (found,) = problems(folder, override)
    assert isinstance(found, UsageFault)
    assert str(found.where).startswith("--set")
