"""`serve --follow` goes over to another release and back, under load, and no request is dropped."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from trtpipe.chain.served import free_addresses
from trtpipe.core import artifacts
from trtpipe.core.process import stop
from trtpipe.core.store import Store
from trtpipe.release.current import require_current, switch
from workspaces import write_config

pytestmark = pytest.mark.e2e

CLIENTS = 4
OTHER = "f" * 16
LIMIT_S = 300.0


@pytest.fixture
def store(workspace: Path, tmp_path: Path) -> Store:
    """A workspace with two releases, of the same bytes, of which the first is current."""
    write_config(tmp_path)
    release = require_current(Store(workspace))
    releases = tmp_path / "triton_repo" / "releases"
    for name in (release.id, OTHER):
        shutil.copytree(release.path, releases / name, copy_function=os.link)
    store = Store(tmp_path)
    switch(store, artifacts.read(releases / release.id), "promote", "none")
    return store


@contextmanager
def serving(store: Store) -> Iterator[dict[str, Any]]:
    addresses = free_addresses()
    ports = {"http_port": addresses.http_port, "grpc_port": addresses.grpc_port, "metrics_port": addresses.metrics_port}
    ports |= {"front_port": free_addresses().http_port}
    settings = [word for name, port in ports.items() for word in ("--set", f"serving.{name}={port}")]
    command = [sys.executable, "-m", "trtpipe", "serve", "--follow", "--json", *settings]
    with (
        (store.root / "said").open("w") as said,
        subprocess.Popen(
            command, cwd=store.root, stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "}\n")
            yield json.loads("".join(lines) + "}")
        finally:
            stop(process, grace_s=90)


def wait_for(store: Store, words: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while words not in (said := (store.root / "said").read_text()):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def is_open(url: str) -> bool:
    host, _, port = url.removeprefix("http://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_no_request_is_dropped(store: Store) -> None:
    first, releases = require_current(store), store.root / "triton_repo" / "releases"
    done, answers = threading.Event(), list[str]()

    def ask(client: httpx.Client, number: int) -> None:
        body = {"messages": [{"role": "user", "content": f"Count to {number}."}], "model": "sample", "max_tokens": 12}
        while not done.is_set():
            response = client.post("/chat/completions", json={**body, "stream": number % 2 == 0})
            whole = response.text.endswith("data: [DONE]\n\n") if number % 2 == 0 else response.is_success
            answers.append("whole" if whole and '"error"' not in response.text else response.text[-300:])

    with (
        serving(store) as said,
        httpx.Client(base_url=said["openai"], trust_env=False, timeout=120) as client,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        asking = [pool.submit(ask, client, number) for number in range(CLIENTS)]
        try:
            switch(store, artifacts.read(releases / OTHER), "promote", "none")
            wait_for(store, f"release {OTHER} is served, by Triton at")
            assert not is_open(said["http"])
            there = len(answers)
            switch(store, first, "rollback", "none")
            wait_for(store, f"release {first.id} is served, by Triton at {said['http']}")
        finally:
            done.set()
        for each in asking:
            each.result()

    assert there >= CLIENTS
    assert len(answers) > there
    assert set(answers) == {"whole"}, len(answers)
    assert not is_open(said["http"])
    assert "cut off" not in (store.root / "said").read_text()
