"""Who may change what a running Triton serves: only who holds the key that its start has made.

Loading and unloading models, shared memory, traces and log settings are closed to all others, on HTTP and gRPC. The key
lies in the running server's own folder, readable by its user alone, and goes with it. It also stands on Triton's
command line, because Triton takes it from nowhere else; so other users of this machine can read it there.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import httpx

from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo.exchange import NoServer

if TYPE_CHECKING:
    from pathlib import Path

CLOSED = ("model-repository", "shared-memory", "trace", "logging")
HEADER = "trtpipe-control-key"
GRPC_HEADER = f"triton-grpc-protocol-{HEADER}"
KEY_FILE = "control-key"


def close(folder: Path) -> list[str]:
    """Make a key, keep it in ``folder``, and return the options that close Triton to who does not send it."""
    key = secrets.token_urlsafe(32)
    with os.fdopen(os.open(folder / KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key)
    closed = f"{','.join(CLOSED)}:{HEADER}={key}"
    return [f"--http-restricted-api={closed}", f"--grpc-restricted-protocol={closed}"]


def has_key(folder: Path) -> bool:
    """True where a server runs out of ``folder``."""
    return (folder / KEY_FILE).is_file()


def key_of(folder: Path) -> str:
    """Return the key of the server that runs out of ``folder``. Raises EnvironmentUnfit where there is none."""
    try:
        return (folder / KEY_FILE).read_text()
    except FileNotFoundError:
        raise EnvironmentUnfit(
            "no server runs here that can load its models again",
            where=str(folder),
            fix="start one with `trtpipe serve`; a server of a TensorRT-LLM engine is stopped and started again",
        ) from None


def reload(http_url: str, folder: Path, *, time_limit_s: float) -> None:
    """Load the served models again: the ensemble, and with it all that it calls.

    Raises EnvironmentUnfit (no key, no server), ToolFailed with Triton's reason.
    """
    key, url = key_of(folder), f"{http_url}/v2/repository/models/ensemble/load"
    try:
        response = httpx.post(url, json={}, headers={HEADER: key}, timeout=time_limit_s, trust_env=False)
    except httpx.ConnectError:
        raise NoServer(url) from None
    except httpx.TransportError as fault:
        what = f"the server did not load the models: {fault or type(fault).__name__}"
        raise ToolFailed(what, where=url, fix="see the server's log") from None
    if response.is_error:
        raise ToolFailed(
            f"the server answered {response.status_code}: {response.text.strip()}",
            where=url,
            fix="see the server's log",
        )
