"""A dry run says what would be made, as far as that shows, and leaves the workspace as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins import triton_environment
from tiny_chain import hollow_model, write_config, write_prompts
from trtpipe.chain.chain import Chain
from trtpipe.chain.foresight import foresee
from trtpipe.config.load import Workspace, workspace
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from workspaces import trtpipe

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    write_config(tmp_path, model=hollow_model(tmp_path / "model"), prompts=write_prompts(tmp_path / "prompts.jsonl"))
    triton_environment.install(tmp_path / ".venv-triton")
    return workspace(tmp_path / "trtpipe.yaml")


def decisions(space: Workspace, artifact: str = "verdict") -> dict[str, str]:
    return {stage.stage: f"{stage.decision}: {stage.reason}" for stage in foresee(space, artifact)}


def test_a_fresh_workspace(space: Workspace) -> None:
    before = sorted(space.root.rglob("*"))
    assert decisions(space) == {
        "select-prompts": "build: first run",
        "calibrate": "depends: on what select-prompts gives",
        "build-engine": "depends: on what select-prompts gives",
        "package": "depends: on what select-prompts gives",
        "score-baseline": "depends: on what select-prompts gives",
        "score-release": "depends: on what select-prompts gives",
        "check-drift": "depends: on what select-prompts gives",
    }
    assert sorted(space.root.rglob("*")) == before


def test_stages_that_do_not_depend_on_each_other_are_told_apart(space: Workspace) -> None:
    assert Chain(space, Runner(Store(space.root), Silent())).prompt_set
    found = decisions(space)
    assert found["select-prompts"].startswith("reuse: same inputs and parameters")
    assert found["calibrate"] == "build: first run"
    assert found["build-engine"] == "depends: on what calibrate gives"
    assert found["score-baseline"] == "build: first run"
    assert found["score-release"] == "depends: on what calibrate gives"
    assert list(decisions(space, "checkpoint")) == ["select-prompts", "calibrate"]


@pytest.mark.parametrize("command", ["run", "calibrate", "build-engine", "package", "check-drift"])
def test_the_commands(space: Workspace, command: str) -> None:
    before = sorted(space.root.rglob("*"))
    shown = trtpipe(command, "--dry-run", folder=space.root)
    assert (shown.code, shown.stdout.splitlines()[0].split()) == (0, ["select-prompts", "build", "first", "run"])
    document = trtpipe(command, "--dry-run", "--json", folder=space.root).document
    assert document["stages"][0] == {"stage": "select-prompts", "decision": "build", "reason": "first run"}
    assert sorted(space.root.rglob("*")) == before


@pytest.mark.parametrize("command", [["run"], ["check-drift"], ["run", "--dry-run"], ["check-drift", "--dry-run"]])
def test_triton_is_missed_before_anything_is_made(space: Workspace, command: list[str]) -> None:
    (space.root / ".venv-triton/bin/python").unlink()
    done = trtpipe(*command, "-q", folder=space.root)
    what, where, fix = done.stderr.splitlines()
    assert (done.code, what) == (4, "error: there is no Python environment for Triton")
    assert where == f"  where: {space.root / '.venv-triton'}"
    assert f"-m venv {space.root / '.venv-triton'} && " in fix
    assert "serving.triton_environment" in fix
    assert not (space.root / "calibration").exists()
    assert trtpipe("calibrate", "--dry-run", folder=space.root).code == 0


def test_bad_input_is_found_in_a_dry_run_too(space: Workspace) -> None:
    (space.root / "model/model.safetensors").unlink()
    done = trtpipe("run", "--dry-run", folder=space.root)
    assert (done.code, done.stderr.splitlines()[0]) == (3, "error: there are no *.safetensors files")


@pytest.mark.parametrize("command", [["package", "--dry-run"], ["package"]])
def test_overlays_are_judged_before_the_stages_that_come_first(space: Workspace, command: list[str]) -> None:
    overlay = space.root / "triton_repo/overlays/tensorrt_llm.pbtxt"
    overlay.parent.mkdir(parents=True)
    overlay.write_text("model_transaction_policy { decoupled: false }")
    done = trtpipe(*command, "-q", folder=space.root)
    assert done.code == 3
    assert "decoupled is false, and the model's code streams" in done.stderr
    assert f"{overlay}:1" in done.stderr
    assert not (space.root / "calibration").exists()
