"""What the tests of `trtpipe accept` share: a site on which the stand-ins are ready, and what the command leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from standins import tritonserver
from trtpipe.chain.served import free_addresses
from trtpipe.errors import TrtpipeError

if TYPE_CHECKING:
    import pytest
    from click.testing import Result

    from trtllm_builds import Site
    from trtpipe.triton_repo.server import Addresses


def ready(made: Site, folder: Path, patch: pytest.MonkeyPatch, **config: Any) -> tuple[Site, Addresses]:
    """Return a copy of ``made`` that serves on free ports; ``folder`` becomes the working directory."""
    copy, free = made.copy(folder / "site"), free_addresses()
    programs = f"{copy.install()}{os.pathsep}{tritonserver.install(folder / 'triton')}"
    patch.setenv("PATH", programs, prepend=os.pathsep)
    patch.chdir(folder)
    ports = {"http_port": free.http_port, "grpc_port": free.grpc_port, "metrics_port": free.metrics_port}
    copy.write_config(serving=ports, **config)
    return copy, free


def fault_of(result: Result) -> TrtpipeError:
    assert isinstance(result.exception, TrtpipeError), result.exception
    return result.exception


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("accept-target.json").read_text())
    return found
