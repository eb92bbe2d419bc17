"""Ctrl-C, SIGTERM and SIGKILL in the middle of a stage: no child is left, nothing half-made, the next run goes on."""

from __future__ import annotations

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

SETTINGS = "quantization: {alpha_grid_points: 2}\n"
INTERRUPTED_AT = "quantize layer 0/"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    real_model(folder / "model", layers=3)
    write_prompts(folder / "prompts.jsonl")
    return folder


def prepare(folder: Path, inputs: Path) -> Path:
    write_config(folder, model=inputs / "model", prompts=inputs / "prompts.jsonl", more=SETTINGS)
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trtpipe", "calibrate"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def stop(folder: Path, number: signal.Signals) -> tuple[int, str]:
    """Start the command, send it a signal in the middle of its work, and return how it ended and what it said then."""
    with start(folder) as run:
        assert run.stderr is not None
        assert any(INTERRUPTED_AT in line for line in run.stderr)
        os.kill(run.pid, number)
        said = run.stderr.read()
    return run.returncode, said


def finish(folder: Path) -> dict[str, str]:
    """Run to the end and return the digest of each stage's output."""
    done = trtpipe("calibrate", "--json", folder=folder)
    assert done.code == 0, done.stdout + done.stderr
    return {stage["stage"]: stage["digest"] for stage in done.document["stages"]}


def test_a_run_that_was_stopped_in_every_way_ends_as_an_undisturbed_one(tmp_path: Path, inputs: Path) -> None:
    folder = prepare(tmp_path / "disturbed", inputs)
    for number in (signal.SIGINT, signal.SIGTERM):
        code, said = stop(folder, number)
        assert code == 130
        assert "run the same command again to go on" in said
        assert none_in(folder, within_s=0)
    code, _ = stop(folder, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert none_in(folder, within_s=5)
    checkpoints = folder / FOLDERS["checkpoint"]
    assert not list(checkpoints.glob(f"*[!l]/{RECORD}")), "nothing that looks finished"
    assert finish(folder) == finish(prepare(tmp_path / "undisturbed", inputs))
    assert not list(checkpoints.glob("*.partial"))


def test_a_run_that_waits_goes_on_when_the_other_ends(tmp_path: Path, inputs: Path) -> None:
    prepare(tmp_path, inputs)
    with start(tmp_path) as first:
        assert first.stderr is not None
        assert any("calibrate  building" in line for line in first.stderr)
        refused = trtpipe("calibrate", "--json", folder=tmp_path)
        waited = trtpipe("calibrate", "--json", "--wait", "300", folder=tmp_path)
        first.communicate(timeout=300)
    assert refused.code == 8
    assert f"process {first.pid}" in refused.document["errors"][0]["what"]
    assert f"waiting up to 300 s for `trtpipe calibrate`, process {first.pid}" in waited.stderr
    assert (first.returncode, waited.code) == (0, 0)
    assert all(stage["reused"] for stage in waited.document["stages"])
