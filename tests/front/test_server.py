"""How the front ends: nothing more is accepted, running requests end, within a time."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from stand_in_triton import StandIn, stand_in_triton
from trtpipe.errors import EnvironmentUnfit
from trtpipe.front import server

# The front of conftest in a process of its own, which a signal can end.
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from calibration.tiny import chat_tokenizer
from trtpipe.front import app, server
from trtpipe.front.settings import Limits, Served
folder, url, drain_s = Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])
limits = Limits(200, 100, 4096, 8, 30.0, drain_s)
served = Served("tiny", 0, url, chat_tokenizer(folder / "model"), limits, None)
taken = server.bind("127.0.0.1", 0)
port = taken.getsockname()[1]
server.run(app.build(served), taken, drain_s=drain_s, log=folder / "front.log",
           on_ready=lambda: print(port, flush=True), until=lambda: server.ended((folder / "ended").exists))
"""
BODY = {"model": "tiny", "prompt": "x", "stream": True}


@pytest.fixture
def triton() -> Iterator[StandIn]:
    with stand_in_triton() as triton:
        triton.say(*"abcdefghij")
        triton.gap_s = 0.15
        yield triton


@contextmanager
def front(folder: Path, triton: StandIn, drain_s: float) -> Iterator[tuple[subprocess.Popen[str], str]]:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", PROGRAM, tests, str(folder), triton.url, str(drain_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}/v1/completions"
        finally:
            process.kill()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_running_requests_end_and_takes_no_more(
    tmp_path: Path, triton: StandIn, stop: signal.Signals
) -> None:
    with front(tmp_path, triton, drain_s=10) as (process, url):
        with httpx.stream("POST", url, json=BODY, trust_env=False) as response:
            lines = response.iter_lines()
            next(lines)
            process.send_signal(stop)
            time.sleep(0.4)
            with pytest.raises(httpx.ConnectError):
                httpx.post(url, json=BODY, trust_env=False)
            assert list(lines)[-2] == "data: [DONE]"
        assert process.wait(20) == -stop
    assert not triton.left.is_set()


@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_end_in_time_is_told_and_freed(tmp_path: Path, triton: StandIn, stream: bool) -> None:
    triton.say(*"abcdefghij" * 20)
    with front(tmp_path, triton, drain_s=1) as (process, url), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, url, json={**BODY, "stream": stream}, timeout=20, trust_env=False)
        while not triton.bodies:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        response = asked.result()
        assert process.wait(20) == -signal.SIGTERM
    assert response.status_code == (200 if stream else 503)
    last = response.text.strip().rsplit("\n", 1)[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "stopping"
    assert triton.left.wait(20)
    assert "Traceback" not in (tmp_path / "front.log").read_text()


def test_it_ends_when_what_it_stands_before_has_ended(tmp_path: Path, triton: StandIn) -> None:
    with front(tmp_path, triton, drain_s=1) as (process, _):
        (tmp_path / "ended").touch()
        assert process.wait(20) == 0


def test_a_port_in_use_is_said_in_words() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EnvironmentUnfit, match=r"can't listen on 127\.0\.0\.1"),
    ):
        server.bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_bound_port_accepts_nobody_before_the_start(host: str) -> None:
    with server.bind(host, 0) as taken, pytest.raises(ConnectionRefusedError):
        socket.create_connection(taken.getsockname()[:2])
