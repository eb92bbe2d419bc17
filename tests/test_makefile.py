"""`make build-engine` gives the command that the target's engine has, and what it prints runs."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from planning import model, target_path
from trtpipe.cli import trtpipe
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

# The tests run under make themselves, which tells the makes below it so.
OF_NO_MAKE = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def command(*variables: str) -> list[str]:
    """Return the last line that make would run, after those of the setup."""
    terminal = os.pipe()  # on which nobody types
    try:
        done = subprocess.run(
            ["/usr/bin/make", "-n", "--no-print-directory", "build-engine", *variables],
            cwd=REPOSITORY, env=OF_NO_MAKE, stdin=terminal[0], capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    finally:
        for end in terminal:
            os.close(end)
    return shlex.split(done.stdout.splitlines()[-1])


def test_the_local_engine_has_a_whole_chain() -> None:
    assert command() == [".venv/bin/trtpipe", "run"]
    assert command("TARGET=engines/local.yaml", "MODEL=/m", "PROMPTS=/p.jsonl", "ARGS=-q")[1:] == [
        "run", "--set", "target=engines/local.yaml", "--set", "model=/m", "--set", "prompts.calibration_prompts=128",
        "--set", 'prompts.files=["/p.jsonl"]', "-q",
    ]  # fmt: skip


def test_a_tensorrt_llm_target_prints_its_lines_or_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    variables = [f"TARGET={target_path('a100x8')}", f"MODEL={model('qwen2.5-72b')}", "PROMPTS=/logs/p.jsonl"]
    lines = CliRunner().invoke(trtpipe, command(*variables, "ARGS=--dry-run")[1:])
    assert lines.exit_code == 0, lines.output
    assert """--set 'prompts.files=["/logs/p.jsonl"]' \\\n""" in lines.output
    assert "trtllm-build" in lines.output
    refused = CliRunner().invoke(trtpipe, command(*variables)[1:])
    assert "built from a TensorRT-LLM checkpoint, and none is given" in str(refused.exception)
