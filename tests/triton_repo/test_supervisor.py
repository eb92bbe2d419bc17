"""The supervisor with small programs in the server's place: nothing is left, whoever dies first."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# A server whose child ignores SIGTERM, as Triton's model processes do.
STUBBORN_CHILD = "trap '' TERM; echo $$ > child; while true; do sleep 0.1; done"
SERVER = f"""({STUBBORN_CHILD.replace("$$", "$BASHPID")}) & echo $$ > server; trap 'exit 7' TERM; wait"""


def start(folder: Path, command: list[str], grace_s: float = 20, starter: int | None = None) -> subprocess.Popen[bytes]:
    arguments = [str(starter or os.getpid()), f"trtpipe_test_{os.getpid()}_", str(grace_s)]
    return subprocess.Popen(
        [sys.executable, "-m", "trtpipe.triton_repo.supervisor", *arguments, *command],
        cwd=folder,
        start_new_session=True,
    )


def until(condition: Callable[[], bool], limit_s: float = 20) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip() != "")
    return int(path.read_text())


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_servers_exit_status_is_passed_on(tmp_path):
    assert start(tmp_path, ["bash", "-c", "exit 3"]).wait(20) == 3
    assert start(tmp_path, ["bash", "-c", "kill -SEGV $$"]).wait(20) == 128 + signal.SIGSEGV


def test_a_stop_is_passed_on_and_stubborn_children_are_killed(tmp_path):
    supervisor = start(tmp_path, ["bash", "-c", SERVER])
    server, child = pid_in(tmp_path / "server"), pid_in(tmp_path / "child")

    supervisor.terminate()

    assert supervisor.wait(20) == 7
    assert not alive(server)
    assert not alive(child)


def test_a_server_that_does_not_end_is_killed_after_the_grace(tmp_path):
    supervisor = start(tmp_path, ["bash", "-c", f"echo $$ > server; {STUBBORN_CHILD}"], grace_s=0.5)
    server = pid_in(tmp_path / "server")

    supervisor.terminate()

    assert supervisor.wait(20) == 128 + signal.SIGKILL
    assert not alive(server)


def test_everything_ends_when_the_starter_is_killed(tmp_path):
    program = (
        "import os, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'trtpipe.triton_repo.supervisor', str(os.getpid()), 'none_', '5',"
        " 'bash', '-c', sys.argv[1]], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, SERVER], cwd=tmp_path)
    server, child = pid_in(tmp_path / "server"), pid_in(tmp_path / "child")

    starter.kill()
    starter.wait()

    until(lambda: not alive(server) and not alive(child))


def test_shared_memory_with_the_prefix_is_removed(tmp_path):
    region = Path("/dev/shm") / f"trtpipe_test_{os.getpid()}_region"
    region.touch()

    start(tmp_path, ["true"]).wait(20)

    assert not region.exists()


def test_nothing_is_started_for_a_starter_that_is_gone(tmp_path):
    assert start(tmp_path, ["bash", "-c", "echo > started; exit 3"], starter=1).wait(20) == 0
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("signal_number", [signal.SIGKILL])
def test_children_of_a_crashed_server_are_ended(tmp_path, signal_number):
    supervisor = start(tmp_path, ["bash", "-c", SERVER])
    server, child = pid_in(tmp_path / "server"), pid_in(tmp_path / "child")

    os.kill(server, signal_number)

    assert supervisor.wait(20) == 128 + signal_number
    assert not alive(child)
