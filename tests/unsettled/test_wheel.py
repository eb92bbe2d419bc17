"""The wheel, installed in a clean environment without extras, works in a fresh folder outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from trtpipe.config import starter
from workspaces import REPOSITORY

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(REPOSITORY)]
    subprocess.run(pip, check=True)
    return next(folder.glob("trtpipe-*.whl"))


def test_it_holds_one_package_and_the_files_of_a_workspace(built: Path) -> None:
    with zipfile.ZipFile(built) as wheel:
        names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"trtpipe"}
    assert {f"trtpipe/starter/{name}" for name in starter.FILES} <= set(names)
    assert "trtpipe/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_it_runs_outside_the_repository(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(built)], check=True)
    workspace = tmp_path / "workspace"

    def trtpipe(*arguments: str, code: int = 0) -> str:
        own = ("PYTHONPATH", "TRTPIPE_CONFIG")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        done = subprocess.run(
            [tmp_path / "venv/bin/trtpipe", *arguments],
            cwd=workspace if workspace.exists() else tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert "Usage: trtpipe" in trtpipe("--help")
    trtpipe("init", "workspace")
    for name in starter.FILES:
        assert (workspace / name).read_bytes() == (REPOSITORY / name).read_bytes()
    assert "valid (model sample, engine vllm)" in trtpipe("validate")
    assert "current: none" in trtpipe("status")
    refused = trtpipe("run", "--dry-run", code=4)
    assert "is not installed" in refused
    assert "pip install 'trtpipe[vllm]'" in refused
