"""The scripts do again what they say, apart from the artifact."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trtpipe.core import process, reproduction
from trtpipe.core.progress import Silent


@pytest.mark.parametrize("finished", [False, True])
def test_a_worker_runs_again_beside_the_artifact(tmp_path: Path, finished: bool) -> None:
    notes, work = tmp_path / "runs" / "odd 'name", tmp_path / "made" / "abc.partial"
    notes.mkdir(parents=True)
    work.mkdir(parents=True)
    (work / "given").write_text("given and ")
    process.run_worker(
        "strange_worker",
        {"do": "write", "out": str(work)},
        log=notes / "log.txt",
        reporter=Silent(),
        time_limit_s=30,
        environment={"PYTHONPATH": str(Path(__file__).parent), "MORE": "more; 'quoted'"},
    )
    made = work.rename(work.with_name("abc")) if finished else work
    (made / "written").write_text("must stay")
    again = subprocess.run([notes / reproduction.SCRIPT], capture_output=True, text=True, check=True, cwd="/")
    assert (notes / "again" / "written").read_text() == "given and more; 'quoted'"
    assert (made / "written").read_text() == "must stay"
    assert '{"event": "result"' in again.stdout


def test_a_command_is_given_again_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reproduction.of_command(tmp_path, ["--version"])
    again = subprocess.run([tmp_path / reproduction.SCRIPT], capture_output=True, text=True, check=True, cwd="/")
    assert again.stdout.startswith("trtpipe, version")
    assert f"cd {tmp_path}\n{sys.executable} -m trtpipe --version" in (tmp_path / reproduction.SCRIPT).read_text()
