"""What a host stands for, and how it is written."""

from __future__ import annotations

import socket

import pytest

from trtpipe.core import hosts


@pytest.mark.parametrize(
    ("host", "family", "number"),
    [
        ("127.0.0.1", socket.AF_INET, "127.0.0.1"),
        ("localhost", socket.AF_INET, "127.0.0.1"),
        ("::1", socket.AF_INET6, "::1"),
        ("::", socket.AF_INET6, "::"),
    ],
)
def test_a_host_is_one_number(host: str, family: socket.AddressFamily, number: str) -> None:
    assert hosts.resolve(host) == (family, number)


def test_only_numbers_of_ipv6_get_brackets() -> None:
    assert hosts.url("http", "::1", 8000) == "http://[::1]:8000"
    assert hosts.url("grpc", "example.org", 8001) == "grpc://example.org:8001"


@pytest.mark.parametrize("host", ["127.0.0..1", "a" * 64])
def test_a_mistyped_host_is_an_os_error(host: str) -> None:
    with pytest.raises(OSError, match="not the name of a host"):
        hosts.resolve(host)
