"""A taken port is named with its holder before anything is started."""

import os
import socket

import pytest

from trtpipe.core import ports
from trtpipe.errors import EnvironmentUnfit


def test_a_free_port_passes():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    ports.require_free("127.0.0.1", {"http": port})


def test_a_taken_port_is_named_with_its_holder():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(EnvironmentUnfit, match=f"grpc port {port} .*process {os.getpid()}") as caught:
            ports.require_free("127.0.0.1", {"grpc": port})

    assert caught.value.where == "serving.grpc_port"
