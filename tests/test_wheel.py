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

PACKAGE = REPOSITORY / "pipeline" / "trtpipe"


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
    shipped = (*starter.FILES, starter.GENERAL_PROMPTS, starter.SAMPLE_POLICY)
    assert {f"trtpipe/starter/{name}" for name in shipped} <= set(names)
    ours = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(PACKAGE.parent).as_posix() for path in ours} <= set(names), "templates and models too"
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_it_runs_outside_the_repository(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    into = ["--python", str(tmp_path / "venv/bin/python"), "install", "--quiet", "--no-compile"]
    subprocess.run([sys.executable, "-m", "pip", *into, str(built)], check=True)
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
