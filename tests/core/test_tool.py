"""Programs that are none of ours: their lines, their end, and the script that runs them again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trtpipe.core import reproduction
from trtpipe.core.tool import run_tool
from trtpipe.errors import ToolFailed


def run(tmp_path: Path, code: str, limit_s: float = 60) -> tuple[str | None, list[str]]:
    lines: list[str] = []
    command = [sys.executable, "-c", code]
    ending = run_tool(
        command, log=tmp_path / "log.txt", time_limit_s=limit_s, environment=os.environ, on_line=lines.append
    )
    return ending, lines


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("print('one'); print('two')", None),
        ("print('one'); print('two'); raise SystemExit(3)", "exit status 3"),
        ("print('one'); print('two', flush=True); import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    ],
)
def test_lines_come_whole_and_the_end_is_told(tmp_path: Path, code: str, ending: str | None) -> None:
    assert run(tmp_path, code) == (ending, ["one", "two"])
    assert (tmp_path / "log.txt").read_text() == "one\ntwo\n"


def test_out_of_time_it_is_ended_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pid)!r}, "w").write(str(child.pid))
print("waiting", flush=True)
child.wait()
"""
    with pytest.raises(ToolFailed, match=r"did not finish within 8 s\n  \| waiting"):
        run(tmp_path, code, limit_s=8)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid.read_text()}/cmdline").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_the_script_writes_beside_itself_not_into_the_artifact(tmp_path: Path) -> None:
    run_folder, work = tmp_path / "run", tmp_path / "engine.partial"
    run_folder.mkdir()
    reproduction.of_tool(run_folder, ["touch", f"{work}/made here"], work)
    subprocess.run([run_folder / "reproduce.sh"], check=True)
    assert (run_folder / "again/made here").is_file()
    assert not work.exists()
