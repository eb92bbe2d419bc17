"""Workers that report, fail, die, hang, flood, leave processes behind or lose their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.strange_worker import FOREVER_S
from trtpipe.core import process
from trtpipe.core.progress import Silent
from trtpipe.errors import EnvironmentUnfit, Problems, ToolFailed

WORKER = "strange_worker"

ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parent)}


class Heard(Silent):
    def __init__(self) -> None:
        self.said: list[object] = []

    def progress(self, label: str, done: int, total: int) -> None:
        self.said.append((label, done, total))

    def note(self, text: str) -> None:
        self.said.append(text)


def run(folder: Path, do: str, *, time_limit_s: float = 30, reporter: Silent | None = None, **job: Any) -> Any:
    return process.run_worker(
        WORKER,
        {"do": do, "folder": str(folder), **job},
        log=folder / "log",
        reporter=reporter or Silent(),
        time_limit_s=time_limit_s,
        environment=ENVIRONMENT,
    )


def ends(pid: int, within_s: float = 5) -> bool:
    """True once a process is gone or only waits to be collected by its parent."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


def test_events_and_the_result_arrive(tmp_path: Path) -> None:
    heard = Heard()
    assert run(tmp_path, "report", reporter=heard) == {"job_size": 0}
    assert heard.said == ["a note", ("steps", 1, 2)]


def test_a_large_job_arrives(tmp_path: Path) -> None:
    assert run(tmp_path, "nothing", ballast="x" * 1_000_000) == {"job_size": 1_000_000}


def test_the_workers_errors_are_raised_as_they_were(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        run(tmp_path, "fail")
    assert (caught.value.what, caught.value.where, caught.value.fix) == ("no", "here", "buy more")
    with pytest.raises(Problems, match="one\nerror: two"):
        run(tmp_path, "fail twice")


def test_a_bug_shows_its_traceback_once(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="ended early: exit status 1\n") as caught:
        run(tmp_path, "bug")
    assert caught.value.what.count("RuntimeError: unforeseen") == 1


def test_a_module_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="No module named"):
        process.run_worker("no.such", {}, log=tmp_path / "log", reporter=Silent(), time_limit_s=30)


def test_a_signal_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="killed by SIGKILL"):
        run(tmp_path, "die")


def test_a_hanging_worker_is_stopped(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ToolFailed, match="did not finish within 2 s"):
        run(tmp_path, "hang", time_limit_s=2)
    assert time.monotonic() - started < FOREVER_S / 2
    assert ends(int((tmp_path / "worker").read_text()), within_s=0.1)


def test_a_worker_deaf_to_sigterm_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.stop, "__defaults__", (0.2,))
    with pytest.raises(ToolFailed, match="did not finish within 1 s"):
        run(tmp_path, "hang politely", time_limit_s=1)


def test_a_worker_that_hangs_after_its_result_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LINGER_S", 0.5)
    heard, started = Heard(), time.monotonic()
    assert run(tmp_path, "linger", reporter=heard) == {"job_size": 0}
    assert time.monotonic() - started < FOREVER_S / 2
    assert heard.said == ["the worker hung for 0 s after its result and was ended"]


@pytest.mark.parametrize("do", ["fill the disk", "fill the disk in Rust"])
def test_what_the_system_refuses_is_no_bug_of_the_worker(tmp_path: Path, do: str) -> None:
    with pytest.raises(EnvironmentUnfit, match="the system refused: No space left on device"):
        run(tmp_path, do)


@pytest.mark.parametrize("do", ["say something", "flood", "fill the disk"])
def test_a_full_disk_may_hold_the_log_too(tmp_path: Path, do: str) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    with pytest.raises(EnvironmentUnfit, match="the system refused: No space left on device"):
        run(tmp_path, do)


def test_a_file_that_the_worker_misses_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="FileNotFoundError"):
        run(tmp_path, "lose a file")


def test_a_flood_goes_to_the_log_and_its_end_is_shown(tmp_path: Path) -> None:
    assert run(tmp_path, "flood") == {"job_size": 0}
    assert (tmp_path / "log").stat().st_size == 200_000
    assert len(process.tail(tmp_path / "log").splitlines()) == 15


def test_the_tail_of_odd_logs(tmp_path: Path) -> None:
    assert process.tail(tmp_path / "none") == "  (no log)"
    (tmp_path / "log").write_bytes(b"\xff\n" + b"x" * process.TAIL_BYTES + b"\nlast")
    assert process.tail(tmp_path / "log", lines=1) == "  | last"


@pytest.mark.parametrize("do", ["start another", "fork"])
def test_what_a_worker_leaves_behind_is_ended(tmp_path: Path, do: str) -> None:
    """A forked child also keeps the pipe of the events open."""
    assert run(tmp_path, do) == {"job_size": 0}
    assert ends(int((tmp_path / "other").read_text()))


PARENT = """
import sys
from pathlib import Path
from trtpipe.core.process import run_worker
from trtpipe.core.progress import Silent
job = {"do": "hang", "folder": "."}
run_worker(sys.argv[1], job, log=Path("log").absolute(), reporter=Silent(), time_limit_s=30)
"""


@pytest.mark.parametrize(("module", "sign"), [(WORKER, "worker"), ("slow_import", "importing")])
def test_a_worker_dies_with_its_parent_also_while_it_imports(tmp_path: Path, module: str, sign: str) -> None:
    command = [sys.executable, "-c", PARENT, module]
    with subprocess.Popen(command, env=os.environ | ENVIRONMENT, cwd=tmp_path) as parent:
        deadline = time.monotonic() + 20
        while not (tmp_path / sign).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.kill()
    assert ends(int((tmp_path / sign).read_text()))


def test_a_worker_whose_parent_died_before_it_looked_does_nothing(tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    done = subprocess.run(
        [sys.executable, "-m", WORKER],
        input=b'{"do": "hang", "folder": "%s"}' % str(tmp_path).encode(),
        env=os.environ | ENVIRONMENT | {process.EVENTS_VARIABLE: str(write_fd)},
        pass_fds=(write_fd,),
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    os.close(write_fd)
    assert done.returncode == 1
    assert not (tmp_path / "worker").exists()
