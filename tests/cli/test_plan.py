"""``trtpipe plan``, as a user gives it: the text, the JSON, the exit code, and the second that it may take."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tiny_chain
from planning import TARGETS, model, target_path
from trtpipe.chain import prompts as profiling
from trtpipe.cli import trtpipe
from trtpipe.config.load import workspace
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

PLAN_LIMIT_S = 1.0
REQUIRED = ("qwen2.5-72b", "llama-3.1-70b", "llama-3.1-8b", "qwen2.5-7b", "mistral-7b-v0.3", "phi-3-mini-4k")
HEAVY = {"torch", "transformers", "vllm", "tensorrt_llm", "numpy", "polars", "tokenizers", "rich"}
LOADED = """
import json, sys
from trtpipe.cli import trtpipe
trtpipe.main(sys.argv[1:], prog_name="trtpipe", standalone_mode=False)
print(json.dumps([name for name in sys.modules if "." not in name]), file=sys.stderr)
"""


def arguments(name: str, target: str, *more: str) -> list[str]:
    return ["plan", "--model", str(model(name)), "--target", str(target_path(target)), *more]


def run(name: str, target: str, *more: str) -> Result:
    return CliRunner().invoke(trtpipe, arguments(name, target, *more), prog_name="trtpipe")


def document(name: str, target: str, *more: str) -> dict[str, Any]:
    result = run(name, target, "--json", *more)
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"code": result.exit_code}


@pytest.mark.parametrize(
    ("name", "target", "file"),
    [("qwen2.5-72b", "a100x8", "legal"), ("qwen2.5-7b", "a100x8-reuse", "refused"), ("qwen2.5-72b", "l40s", "large")],
)
def test_the_text(
    name: str, target: str, file: str, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)  # short paths, alike on every machine
    command = ["plan", "--model", f"tests/public_configs/{name}", "--target", f"engines/{target}.yaml"]
    result = CliRunner().invoke(trtpipe, [*command, "--profile", "tests/public_configs/profile.json"])
    golden(f"plan/{file}.txt", result.stdout)


def test_what_is_refused_is_exit_code_3() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trtpipe", *arguments("qwen2.5-7b", "a100x8")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "verdict  REFUSED (4 refused," in done.stdout
    assert done.stderr.startswith("error: no engine can be made of this as written: 4 refused, see above\n")
    found = document("qwen2.5-7b", "a100x8")
    assert (found["code"], found["ok"], found["legal"]) == (3, False, False)


def test_the_json_has_all_figures() -> None:
    found = document("qwen2.5-72b", "a100x8")
    assert (found["code"], found["ok"], found["schema_version"]) == (0, True, 1)
    assert found["target_file"] == str(target_path("a100x8"))
    assert [row["bytes_per_token_per_rank"] for row in found["kv"]] == [40_960, 20_480, 20_480]
    assert [finding["kind"] for finding in found["findings"]] == ["changed", "warning", "warning", "note", "note"]


def test_a_key_of_the_target_can_be_overridden() -> None:
    assert document("qwen2.5-72b", "a100x8", "--set", "target.kv_reuse=true")["code"] == 3
    assert document("qwen2.5-72b", "a100x8", "--set", "target.kv_dtype=model", "--set", "target.kv_reuse=true")["ok"]


def test_a_profile_gives_the_logs_sequences() -> None:
    profile = str(REPOSITORY / "tests/public_configs/profile.json")
    found = document("qwen2.5-72b", "a100x8-reuse", "--profile", profile)
    assert found["lengths"]["prompt"] == {"p50": 620, "p95": 2710, "p99": 5480, "max": 7920}
    assert found["kv"][0]["p50_sequences"] > found["kv"][0]["p95_sequences"] > 0
    assert isinstance(run("qwen2.5-72b", "a100x8", "--profile", "nowhere.json").exception, ConfigError)


def test_what_profile_writes_is_taken(tmp_path: Path) -> None:
    """The real thing: a log of 60 prompts profiled and selected from, and both documents planned with."""
    space, prompts = tmp_path / "space", tmp_path / "log.jsonl"
    rows = ({"prompt": f"question {row} " * (row + 1), "response": "yes, quite " * row} for row in range(60))
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tiny_chain.write_config(space, model=tiny_chain.hollow_model(tmp_path / "model"), prompts=prompts)
    config = space / "trtpipe.yaml"
    profile = CliRunner().invoke(trtpipe, ["profile", "-q", "--json", "-c", str(config)])
    assert profile.exit_code == 0, profile.output
    (tmp_path / "profile.json").write_text(profile.stdout)
    stage = profiling.stage(workspace(config), tmp_path / "model", "m" * 64, 32)
    record = Runner(Store(space), Silent()).obtain(stage).path
    exact, page, bounds = (
        document("llama-3.1-8b", "a100x1", "--profile", str(path))["lengths"]
        for path in (tmp_path / "profile.json", space / ".trtpipe/prompts.json", record)
    )
    assert exact == page
    measured = json.loads(profile.stdout)["profile"]["lengths"]["prompt_tokens"]
    assert exact["prompt"] == {name: measured[name]["value"] for name in ("p50", "p95", "p99", "max")}
    assert (exact["bounds"], bounds["bounds"], bounds["reuse_share"]) == (False, True, None)
    for which in ("prompt", "answer"):
        for quantile, tokens in exact[which].items():
            assert tokens <= bounds[which][quantile] + 1 <= tokens * 1.2 + 2


def test_model_and_target_come_from_the_config_where_they_are_not_given(tmp_path: Path) -> None:
    (tmp_path / "trtpipe.yaml").write_text(
        f"model: {model('llama-3.1-8b')}\nprompts:\n  files: [a.jsonl]\ntarget: {target_path('a100x1')}\n"
    )
    result = CliRunner().invoke(trtpipe, ["plan", "-c", str(tmp_path / "trtpipe.yaml"), "--json"])
    assert json.loads(result.stdout)["model"]["hidden"] == 4096
    given = ["plan", "-c", str(tmp_path / "trtpipe.yaml"), "--json", "--target", str(target_path("h200"))]
    other = json.loads(CliRunner().invoke(trtpipe, given).stdout)
    assert (other["model"]["hidden"], other["gpu"]["name"]) == (4096, "h200")
    (tmp_path / "trtpipe.yaml").write_text(
        f"model: sample\nprompts:\n  files: [a.jsonl]\ntarget: {target_path('a100x1')}\n"
    )
    refused = CliRunner().invoke(trtpipe, ["plan", "-c", str(tmp_path / "trtpipe.yaml")])
    assert "the hidden size 576 is no multiple of 128" in refused.stdout
    assert "give the folder of your model with --model: the config's is the sample" in str(refused.exception)


def test_nothing_heavy_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments("qwen2.5-72b", "a100x8")], capture_output=True, check=True
    )
    assert not set(json.loads(done.stderr.splitlines()[-1])) & HEAVY


def test_every_plan_takes_less_than_a_second() -> None:
    """The whole command once, then each model on each target in a process that has its modules already."""

    def seconds(work: Callable[[], object]) -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    command = [sys.executable, "-m", "trtpipe", *arguments("qwen2.5-72b", "a100x8")]
    taken = [seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)) for _ in range(5)]
    assert min(taken) < PLAN_LIMIT_S
    for name in REQUIRED:
        for target in TARGETS:
            assert seconds(lambda name=name, target=target: run(name, target)) < PLAN_LIMIT_S  # type: ignore[misc]
