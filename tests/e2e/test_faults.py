"""Faults that need the real chain: a port in use, the engine or Triton killed in the middle of the check."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bad_inputs import row
from leftovers import none_in, processes_in
from trtpipe.core.artifacts import FOLDERS, RECORD
from trtpipe.core.store import Store
from workspaces import trtpipe, write_config

pytestmark = pytest.mark.e2e


@pytest.fixture
def unchecked(workspace: Path, tmp_path: Path) -> Path:
    """A workspace with everything but the release's scores and verdict."""
    for kind in FOLDERS:
        if kind != "verdict":
            shutil.copytree(workspace / FOLDERS[kind], tmp_path / FOLDERS[kind], copy_function=os.link)
    for scores in Store(tmp_path).all("scores"):
        if scores.record.parts.stage == "score-release":
            shutil.rmtree(scores.path)
    write_config(tmp_path)
    return tmp_path


def check_and_kill(folder: Path, victim: str, *, at: str, served: int) -> tuple[int, str]:
    """Start the check, kill the process whose command line holds ``victim`` when ``at`` is reported.

    ``served``: prompts that Triton is asked, of which some must be left when it is killed.
    """
    command = [sys.executable, "-m", "trtpipe", "check-drift", "--set", f"policy.served_prompts={served}"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        assert run.stderr is not None
        said = []
        for line in run.stderr:
            said.append(line)
            if at in line:
                break
        else:
            pytest.fail("".join(said))
        for pid, text in processes_in(folder).items():
            if victim in text and pid != run.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        error = run.stderr.read()
    return run.returncode, error


@pytest.mark.parametrize(
    ("victim", "at", "served", "name"),
    [
        ("engines.vllm_score", "score heldout", 3, "killed_engine"),
        ("bin/tritonserver", "ask through Triton 0/", 20, "killed_triton"),
    ],
)
def test_a_kill_during_the_check(
    unchecked: Path, victim: str, at: str, served: int, name: str, golden: Callable[[str, str], None]
) -> None:
    code, error = check_and_kill(unchecked, victim, at=at, served=served)
    golden(f"bad_inputs/{name}.txt", row("check-drift", code, error, unchecked))
    assert none_in(unchecked, within_s=10)
    assert not list((unchecked / FOLDERS["verdict"]).glob(f"*/{RECORD}"))
    assert not [scores for scores in Store(unchecked).all("scores") if scores.record.parts.stage == "score-release"]


def test_a_port_in_use(workspace: Path, golden: Callable[[str, str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = trtpipe("serve", "-q", "--set", f"serving.http_port={port}", folder=workspace)
    assert f"http port {port} is not available: process {os.getpid()} " in done.stderr
    golden("bad_inputs/port_in_use.txt", row("serve", done.code, done.stderr, workspace))
