"""A server that has refused many requests stops cleanly: every model is unloaded, nothing waits for a time-out."""

from __future__ import annotations

import time
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from leftovers import SHARED_MEMORY
from trtpipe.chain.served import free_addresses
from trtpipe.core.store import Store
from trtpipe.errors import ToolFailed
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange, server
from workspaces import REPOSITORY

pytestmark = pytest.mark.e2e

TIMES = 15  # each model by each route, whole and as a stream: 60 refusals a model
ROUTES = list(product(exchange.MODELS, ("http", "grpc"), (False, True)))
STOP_S = 18.0  # a model that is still in use is waited for until 20 s have passed


def test_a_server_that_has_refused_requests_stops_cleanly(workspace: Path, tmp_path: Path) -> None:
    release, addresses, log = require_current(Store(workspace)), free_addresses(), tmp_path / "log"
    urls = {"http": addresses.http_url, "grpc": addresses.grpc_url}
    with server.running(
        release.path, REPOSITORY / ".venv-triton", addresses, state=tmp_path, log=log, ready_timeout_s=240
    ) as running:
        refused: Counter[str] = Counter()
        for model, scheme, stream in ROUTES * TIMES:
            with pytest.raises(ToolFailed, match="too long"):
                client.ask(urls[scheme], "word " * 5000, max_tokens=8, model=model, stream=stream)
            refused[model] += 1
        assert set(refused.values()) == {60}
        started = time.monotonic()
    seconds = time.monotonic() - started
    assert running.supervisor.returncode == 0, log.read_text()
    assert seconds < STOP_S, log.read_text()
    assert not list(SHARED_MEMORY.glob(f"trtpipe_*_{addresses.http_port}_*"))
