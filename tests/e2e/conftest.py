"""One real chain and one real Triton a test session.

The workspace stays in ``tests/.workspace`` (ignored by git), so that a second session reuses what has not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from served_metrics import Metrics
from trtpipe.chain.served import free_addresses
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import server as triton
from workspaces import REPOSITORY, trtpipe, write_config

WORKSPACE = REPOSITORY / "tests" / ".workspace"


@pytest.fixture(scope="session")
def workspace() -> Path:
    """A workspace in which `trtpipe run` has passed and promoted."""
    write_config(WORKSPACE)
    result = trtpipe("run", "--json", folder=WORKSPACE)
    assert result.code == 0, result.stdout + result.stderr
    return WORKSPACE


@pytest.fixture(scope="session")
def running(workspace: Path) -> Iterator[triton.Server]:
    """A real Triton that serves the promoted release."""
    store = Store(workspace)
    release = require_current(store)
    with triton.running(
        release.path,
        REPOSITORY / ".venv-triton",
        free_addresses(),
        state=store.state,
        log=store.state / "logs" / "test-serve.log",
        ready_timeout_s=240,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def server(running: triton.Server) -> str:
    """The base HTTP URL of the running server."""
    return running.addresses.http_url


@pytest.fixture
def metrics(running: triton.Server) -> Metrics:
    return Metrics(running)


@pytest.fixture
def settled(metrics: Metrics) -> Metrics:
    """The metrics, once nothing of earlier tests is in flight."""
    metrics.until(lambda: metrics("nv_trt_llm_request_metrics", "active") == 0)
    return metrics
