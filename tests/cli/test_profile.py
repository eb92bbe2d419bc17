"""``trtpipe profile``: a log described, bad rows counted, new traffic held against a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tiny_chain
from planning import target_path
from trtpipe.chain import prompts as profiling
from trtpipe.cli import trtpipe
from trtpipe.config.load import workspace
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError, Stale

if TYPE_CHECKING:
    from click.testing import Result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tiny_chain.hollow_model(tmp_path / "model")
    prompts = tmp_path / "log.jsonl"
    write(prompts, 60)
    tiny_chain.write_config(tmp_path / "space", model=model, prompts=prompts)
    return tmp_path / "space"


def write(path: Path, rows: int, more: str = "") -> Path:
    path.write_text(
        "".join(json.dumps({"prompt": f"question {row} about x{row} {more}"}) + "\n" for row in range(rows))
    )
    return path


def run(folder: Path, *arguments: str) -> Result:
    config = ["-c", str(folder / "trtpipe.yaml"), "-q"]
    return CliRunner().invoke(trtpipe, ["profile", *config, *arguments], prog_name="trtpipe")


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    result = run(folder, "--json", *arguments)
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"code": result.exit_code}


def record(folder: Path) -> Path:
    """Make the workspace's prompt set and return its folder."""
    space = workspace(folder / "trtpipe.yaml")
    stage = profiling.stage(space, space.resolve(space.config.model), "m" * 64, 32)
    return Runner(Store(folder), Silent()).obtain(stage).path


def test_the_configs_log_is_described_with_what_would_be_chosen(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert "60 row(s), 60 plain" in result.stdout
    page = (folder / ".trtpipe/prompts.html").read_text()
    content = json.loads((folder / ".trtpipe/prompts.json").read_text())
    assert content["selection"]["heldout_prompts"] == 40
    assert content["ledger"]["rows"] == 60
    for text in (page, json.dumps(content), result.output):
        assert "question 1" not in text


def test_the_target_may_be_of_tensorrt_llm(folder: Path) -> None:
    settings = ["--set", f"target={target_path('a100x8')}", "--set", "target.kv_block_tokens=128"]
    found = document(folder, *settings)
    assert (found["code"], found["profile"]["prefix"]["block_tokens"]) == (0, 128)


def test_text_is_shown_if_asked_for(folder: Path) -> None:
    assert run(folder, "--show-prompts").exit_code == 0
    assert "question " in (folder / ".trtpipe/prompts.html").read_text()
    assert "question " not in (folder / ".trtpipe/prompts.json").read_text()


def test_another_log_is_described_and_its_bad_rows_are_counted(folder: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.jsonl", 5)
    other.write_text(other.read_text() + "{broken\n")
    found = document(folder, "--prompts", str(other), "--block-tokens", "16")
    assert (found["code"], found["selection"], found["findings_total"]) == (0, None, 1)
    assert found["findings"][0]["where"] == f"{other}:6:2"
    assert found["profile"]["prefix"]["block_tokens"] == 16
    assert "bad row   " in run(folder, "--prompts", str(other)).stdout


def test_traffic_like_the_record_passes_and_other_traffic_is_stale(folder: Path, tmp_path: Path) -> None:
    made = record(folder)
    assert document(folder, "--against", str(made))["ok"] is True
    assert document(folder, "--against", str(made / "record.json"))["code"] == 0
    longer = write(tmp_path / "longer.jsonl", 60, "and a much longer text " * 20)
    found = document(folder, "--prompts", str(longer), "--against", str(made))
    assert (found["ok"], found["code"]) == (False, 9)
    assert [one["feature"] for one in found["against"] if not one["inside"]] == ["prompt_tokens"]
    result = run(folder, "--prompts", str(longer), "--against", str(made))
    assert isinstance(result.exception, Stale)
    assert "prompt_tokens: Kolmogorov-Smirnov 1.0000, limit " in result.stdout


def test_what_became_of_the_rows_is_on_the_screen(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    longer = json.dumps({"prompt": "one of many words " * 100}) + "\n"
    log.write_text(log.read_text() + longer)
    (line,) = [line for line in run(folder).stdout.splitlines() if line.startswith("chosen")]
    assert line == "chosen    60 kept, 1 cut, 0 windowed: 34 to calibrate with (13 general), 40 held out"
    assert "chosen" not in run(folder, "--prompts", str(log)).stdout


def test_what_is_no_record_of_prompts_is_refused_before_the_log_is_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").unlink()
    result = run(folder, "--against", str(tmp_path))
    assert isinstance(result.exception, ConfigError)
    assert result.exception.what == "not a finished artifact: it has no record.json"


def test_the_record_and_the_run_folder_hold_no_text(folder: Path) -> None:
    made = record(folder)
    run_folder = next((folder / ".trtpipe/runs").glob("select-prompts-*"))
    assert (run_folder / "prompts.html").is_file()
    for path in (made / "record.json", run_folder / "prompts.html", run_folder / "prompts.json"):
        assert "question 1" not in path.read_text()
