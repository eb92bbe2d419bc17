"""Readiness is asked for on the loopback, whatever the environment says."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING

import pytest

import launches
from trtpipe.engines.trtllm.launch import compose, watch

if TYPE_CHECKING:
    from collections.abc import Iterator


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == watch.READY else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that is ready."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment whose proxy nobody answers at."""
    (closed,) = launches.free_ports(1)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # an earlier request has kept the proxies of its time


@pytest.mark.usefixtures("proxied")
def test_the_launcher_asks_without_the_proxy(port: int) -> None:
    assert watch.is_ready(port)


@pytest.mark.usefixtures("proxied")
def test_compose_asks_without_the_proxy(port: int) -> None:
    def code(path: str) -> int:
        ask = compose.ASK.replace(f":{compose.INSIDE.http}/", f":{port}/").replace(watch.READY, path)
        return subprocess.run(
            [sys.executable, "-c", ask], env=os.environ, capture_output=True, check=False, timeout=30
        ).returncode

    assert code(watch.READY) == 0
    assert code("/v2/models/another/ready") == 1


def test_an_answer_that_is_not_http_is_not_ready() -> None:
    def answer(server: socket.socket) -> None:
        asking, _ = server.accept()
        with asking:
            asking.recv(4096)
            asking.sendall(b"not http\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        assert not watch.is_ready(server.getsockname()[1])
