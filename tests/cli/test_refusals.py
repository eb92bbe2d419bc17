"""A full disk and a read-only folder: exit code 4 with the place, no artifact, and the same command goes on later."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tiny_chain import hollow_model, real_model, write_config, write_prompts
from trtpipe.core.artifacts import FOLDERS, RECORD
from trtpipe.core.store import Store
from workspaces import trtpipe

if TYPE_CHECKING:
    from pathlib import Path


def mount(*arguments: str) -> None:
    done = subprocess.run(["/usr/bin/mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this user can't mount: {done.stderr.strip()}")


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    mount(*arguments, str(folder))
    try:
        yield
    finally:
        subprocess.run(["/usr/bin/umount", str(folder)], check=True)


def records(folder: Path) -> list[Path]:
    return [path for kind in FOLDERS.values() for path in (folder / kind).glob(f"*/{RECORD}")]


def test_a_full_disk_in_a_stage(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    model, prompts = hollow_model(tmp_path / "model"), write_prompts(tmp_path / "prompts.jsonl", rows=500, times=40)
    with mounted(folder, "-t", "tmpfs", "-o", "size=128k", "tmpfs"):
        write_config(folder, model=model, prompts=prompts)
        done = trtpipe("calibrate", "-q", folder=folder)
        what, where, fix = done.stderr.splitlines()[:3]
        assert (done.code, what) == (4, "error: the system refused: No space left on device")
        assert where.startswith(f"  where: {folder / FOLDERS['prompt-set']}")
        assert fix.startswith("  fix:   free disk space")
        assert not list((folder / FOLDERS["prompt-set"]).iterdir()), "what filled the disk is gone"


def test_a_full_disk_in_a_worker_and_then_more_room(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    model, prompts = real_model(tmp_path / "model"), write_prompts(tmp_path / "prompts.jsonl")
    with mounted(folder, "-t", "tmpfs", "-o", "size=220k", "tmpfs"):
        write_config(folder, model=model, prompts=prompts)
        done = trtpipe("calibrate", "-q", folder=folder)
        assert done.code == 4, done.stderr
        assert "No space left on device" in done.stderr
        assert f"  where: {folder / FOLDERS['checkpoint']}" in done.stderr
        assert f"  log:   {folder / '.trtpipe/runs/calibrate-'}" in done.stderr
        assert [path.parts[-3] for path in records(folder)] == ["sets"]
        mount("-o", "remount,size=64m", str(folder))
        done = trtpipe("calibrate", "-q", folder=folder)
        assert done.code == 0, done.stderr
        assert not list(folder.glob("*/*/*.partial"))


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """What a user without the right to mount can see of a full disk: a limit of 4 KiB a file."""
    folder = tmp_path / "workspace"
    prompts = write_prompts(tmp_path / "prompts.jsonl", rows=50)
    write_config(folder, model=hollow_model(tmp_path / "model"), prompts=prompts)
    done = subprocess.run(
        [sys.executable, "-m", "trtpipe", "calibrate", "-q"],
        cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert done.stderr.startswith("error: the system refused: File too large\n  where: ")
    assert records(folder) == []


@pytest.mark.parametrize("made_before", [False, True])
def test_a_read_only_workspace(tmp_path: Path, made_before: bool) -> None:
    folder = tmp_path / "workspace"
    write_config(folder, model=hollow_model(tmp_path / "model"), prompts=write_prompts(tmp_path / "prompts.jsonl"))
    if made_before:
        (Store(folder).state).mkdir()
        (Store(folder).state / "lock").touch()
    with mounted(folder, "--bind", str(folder)):
        mount("-o", "remount,bind,ro", str(folder))
        done = trtpipe("calibrate", "-q", folder=folder)
        looked = [trtpipe(*command, folder=folder) for command in (["validate"], ["calibrate", "--dry-run"])]
    what, where, fix = done.stderr.splitlines()
    assert (done.code, what) == (4, "error: the system refused: Read-only file system")
    assert where == f"  where: {Store(folder).state / 'lock' if made_before else Store(folder).state}"
    assert fix
    assert [result.code for result in looked] == [0, 0], "looking needs no write"
