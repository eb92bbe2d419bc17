"""A taken port is named with its holder before anything is started."""

from __future__ import annotations

import os
import socket
from contextlib import closing

import pytest

from trtpipe.core import hosts, ports
from trtpipe.errors import EnvironmentUnfit

HOSTS = ["127.0.0.1", "localhost", "::1"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_free_port_passes(host: str) -> None:
    with closing(hosts.listener(host, 0)) as probe:
        port = probe.getsockname()[1]

    ports.require_free(host, {"http": port})


@pytest.mark.parametrize("host", HOSTS)
def test_a_taken_port_is_named_with_its_holder(host: str) -> None:
    with closing(hosts.listener(host, 0)) as holder:
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(EnvironmentUnfit, match=f"grpc port {port} .*process {os.getpid()}") as caught:
            ports.require_free(host, {"grpc": port})

    assert caught.value.where == "serving.grpc_port"


def test_the_other_family_does_not_take_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        ports.require_free("::1", {"http": holder.getsockname()[1]})


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "no-such-name.invalid"])
def test_an_address_of_no_machine_here_is_said_once(host: str) -> None:
    (fault,) = ports.faults(host, {"http": 8000, "grpc": 8001})

    assert fault.what.startswith(f"nothing can listen on the address {host}: ")
