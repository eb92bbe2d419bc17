"""Each extra can be resolved from a package registry, or is refused by name where it cannot be had."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from workspaces import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# AutoAWQ has no wheel, and its build asks for a torch that is there already
BUILT_HERE = {"autoawq": ["--no-build-isolation", "torch==2.13.0"]}
# TensorRT-LLM's wheels are on a registry of their own; tests/e2e/test_chain.py has the exit-4 text
ELSEWHERE = {"trtllm"}


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - ELSEWHERE))
def test_an_extra_resolves(extra: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    done = subprocess.run(
        [*command, *EXTRAS[extra], *BUILT_HERE.get(extra, [])], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_every_extra_is_known_here() -> None:
    assert set(EXTRAS) == {"vllm", "triton", "trtllm", "autoawq", "modelopt", "dev"}
