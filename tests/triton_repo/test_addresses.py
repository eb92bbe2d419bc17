"""How Triton is told where to listen: found with the real server, see ``e2e/test_ipv6.py``."""

from __future__ import annotations

import pytest

from trtpipe.triton_repo.server import Addresses


@pytest.mark.parametrize(
    ("host", "http", "grpc"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1", "127.0.0.1"),
        ("::1", "ipv6:::1", "[::1]"),
    ],
)
def test_triton_gets_numbers_as_each_of_its_servers_reads_them(host: str, http: str, grpc: str) -> None:
    assert Addresses(host, 1, 2, 3).options() == [
        f"--http-address={http}",
        f"--grpc-address={grpc}",
        f"--metrics-address={http}",
        "--http-port=1",
        "--grpc-port=2",
        "--metrics-port=3",
    ]
