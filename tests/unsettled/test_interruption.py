"""Ctrl-C, SIGTERM and SIGKILL in the middle of a stage: no child is left, nothing half-made, the next run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from leftovers import none_in
from tiny_chain import real_model, write_config, write_prompts
from trtpipe.core.artifacts import FOLDERS, RECORD
from workspaces import trtpipe

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = 6
INTERRUPTED_AT = "quantize layer 0/6"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    real_model(folder / "model", layers=LAYERS)
    write_prompts(folder / "prompts.jsonl")
    return folder


@pytest.fixture(scope="module")
def undisturbed(inputs: Path) -> dict[str, str]:
    return finish(inputs / "undisturbed", inputs)


def finish(folder: Path, inputs: Path) -> dict[str, str]:
    """Run to the end and return the digest of each stage's output."""
    write_config(folder, model=inputs / "model", prompts=inputs / "prompts.jsonl")
    done = trtpipe("calibrate", "--json", folder=folder)
    assert done.code == 0, done.stdout + done.stderr
    return {stage["stage"]: stage["digest"] for stage in done.document["stages"]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stop_in_the_middle(
    tmp_path: Path, inputs: Path, undisturbed: dict[str, str], number: signal.Signals
) -> None:
    write_config(tmp_path, model=inputs / "model", prompts=inputs / "prompts.jsonl")
    command = [sys.executable, "-m", "trtpipe", "calibrate"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert any(INTERRUPTED_AT in line for line in run.stderr)
        os.kill(run.pid, number)
        said = run.stderr.read()
    assert run.returncode == (-number if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or "run the same command again to go on" in said
    assert none_in(tmp_path, within_s=5 if number == signal.SIGKILL else 0)
    assert not list((tmp_path / FOLDERS["checkpoint"]).glob(f"*[!l]/{RECORD}"))
    assert finish(tmp_path, inputs) == undisturbed
    assert not list((tmp_path / FOLDERS["checkpoint"]).glob("*.partial"))


def test_a_run_that_waits_goes_on_when_the_other_ends(tmp_path: Path, inputs: Path) -> None:
    write_config(tmp_path, model=inputs / "model", prompts=inputs / "prompts.jsonl")
    command = [sys.executable, "-m", "trtpipe", "calibrate"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        assert any("tokenize" in line for line in first.stderr)
        refused = trtpipe("calibrate", "--json", folder=tmp_path)
        waited = trtpipe("calibrate", "--json", "--wait", "100", folder=tmp_path)
        first.communicate(timeout=100)
    assert refused.code == 8
    assert f"process {first.pid}" in refused.document["errors"][0]["what"]
    assert f"waiting up to 100 s for `trtpipe calibrate`, process {first.pid}" in waited.stderr
    assert (first.returncode, waited.code) == (0, 0)
    assert all(stage["reused"] for stage in json.loads(waited.stdout)["stages"])
