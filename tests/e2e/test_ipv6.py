"""A server on an IPv6 address answers on all of its ports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from trtpipe.chain.served import free_addresses
from trtpipe.client import Client
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import server
from workspaces import REPOSITORY

pytestmark = pytest.mark.e2e


def test_http_grpc_and_metrics_answer(workspace: Path, tmp_path: Path) -> None:
    release, addresses = require_current(Store(workspace)), replace(free_addresses(), host="::1")
    with server.running(
        release.path,
        REPOSITORY / ".venv-triton",
        addresses,
        state=tmp_path,
        log=tmp_path / "log",
        ready_timeout_s=240,
    ):
        assert addresses.http_url.startswith("http://[::1]:")
        for url in (addresses.http_url, addresses.grpc_url):
            with Client(url) as client:
                assert client.generate("Hello", max_tokens=4)
        assert "nv_inference_request_success" in httpx.get(addresses.metrics_url, trust_env=False).text
