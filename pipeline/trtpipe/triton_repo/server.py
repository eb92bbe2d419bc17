"""Start and stop a real Triton server for one release, on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from trtpipe.core import hosts, ports
from trtpipe.core.process import stop as kill_group
from trtpipe.core.process import tail
from trtpipe.errors import ConfigError, ToolFailed
from trtpipe.triton_repo import client, control, installation, pbtxt, triton_log

# Requests in flight may end within this time after a stop; Triton then cuts them off.
EXIT_TIMEOUT_S = 20
# Unloading vLLM takes some seconds more.
STOP_GRACE_S = EXIT_TIMEOUT_S + 20.0
POLL_S = 0.25


@dataclass(frozen=True)
class Addresses:
    """Where the server listens."""

    host: str
    http_port: int
    grpc_port: int
    metrics_port: int

    @property
    def http_url(self) -> str:
        return hosts.url("http", self.host, self.http_port)

    @property
    def grpc_url(self) -> str:
        return hosts.url("grpc", self.host, self.grpc_port)

    @property
    def metrics_url(self) -> str:
        return hosts.url("http", self.host, self.metrics_port) + "/metrics"

    @property
    def by_purpose(self) -> dict[str, int]:
        return {"http": self.http_port, "grpc": self.grpc_port, "metrics": self.metrics_port}

    def higher(self, by: int) -> Addresses:
        """Return other ports on the same host."""
        return Addresses(self.host, self.http_port + by, self.grpc_port + by, self.metrics_port + by)

    def host_options(self) -> list[str]:
        """Return what tells Triton to listen there: it takes numbers only, and those of IPv6 in two spellings.

        libevhtp, which serves HTTP and metrics, wants a prefix; gRPC wants brackets. Anything else makes HTTP listen
        nowhere, without an error.
        """
        family, number = hosts.resolve(self.host)
        in_http, in_grpc = (f"ipv6:{number}", f"[{number}]") if family == socket.AF_INET6 else (number, number)
        return [f"--http-address={in_http}", f"--grpc-address={in_grpc}", f"--metrics-address={in_http}"]

    def options(self) -> list[str]:
        return [*self.host_options(), *(f"--{purpose}-port={port}" for purpose, port in self.by_purpose.items())]


@dataclass(frozen=True)
class Program:
    """What serves. ``folder``: removed at the end; ``start``: where in it; ``shm_prefix``: of its shared memory."""

    command: list[str]
    variables: dict[str, str]
    folder: Path
    start: Path
    shm_prefix: str


@dataclass(frozen=True)
class Server:
    """A server that has answered a request. ``supervisor``: its process; it ends when the server does."""

    addresses: Addresses
    supervisor: subprocess.Popen[bytes]
    log: Path
    seconds_to_ready: float


@contextmanager
def running(
    release: Path,
    environment: Path,
    addresses: Addresses,
    *,
    state: Path,
    log: Path,
    ready_timeout_s: float,
    is_unwanted: Callable[[], bool] = lambda: False,
) -> Iterator[Server]:
    """Serve a release within a ``with`` block.

    ``environment``: the Python environment that holds Triton. ``state``: folder for what the server needs while it
    runs. ``is_unwanted``: asked while it starts. The server ends when the thread that started it does.
    Raises EnvironmentUnfit (Triton, ports), ConfigError (the release), ToolFailed (not ready; the log's last lines).
    """
    started = time.monotonic()
    triton = installation.find(environment)
    _require_environments(release, triton)
    ports.require_free(addresses.host, addresses.by_purpose)
    folder = working_folder(state, addresses)
    assemble(folder, release, ("engine",))
    triton.assemble_backends(folder / "backends")
    program, deadline = _program(triton, folder, addresses), started + ready_timeout_s
    with supervised(program, addresses, log, deadline, is_unwanted) as server:
        yield server


@contextmanager
def supervised(
    program: Program, addresses: Addresses, log: Path, deadline: float, is_unwanted: Callable[[], bool]
) -> Iterator[Server]:
    """Run a program until the block ends; within, it has answered. Raises ToolFailed where it was not ready in time."""
    started = time.monotonic()
    supervisor = _start(program, log)
    try:
        _wait_until_ready(supervisor, addresses, log, deadline, is_unwanted)
        yield Server(addresses, supervisor, log, time.monotonic() - started)
    finally:
        _stop(supervisor)
        shutil.rmtree(program.folder)


def wait(server: Server) -> None:
    """Return never by itself: raise ToolFailed when the server ends without having been asked to."""
    server.supervisor.wait()
    raise ToolFailed(f"Triton ended by itself\n{tail(server.log)}", where=str(server.log), fix="see the log")


def _require_environments(release: Path, triton: installation.Installation) -> None:
    """Check the model configs, and that Triton's Python can run each model."""
    found = sorted((release / "model_repository").glob("*/config.pbtxt"))
    if not found:
        raise ConfigError("not a release: no model_repository with configs", where=str(release), fix="package it again")
    for path in found:
        config = pbtxt.parse(path.read_text(encoding="utf-8"), str(path))
        if "EXECUTION_ENV_PATH" in config.parameters:
            environment = Path(config.parameters["EXECUTION_ENV_PATH"].string_value)
            installation.require_same_python(triton, environment)


def working_folder(state: Path, addresses: Addresses) -> Path:
    return (state / "triton" / str(addresses.http_port)).resolve()


def shm_prefix_of(addresses: Addresses) -> str:
    return f"trtpipe_{os.getpid()}_{addresses.http_port}_"


def assemble(folder: Path, release: Path, beside: tuple[str, ...]) -> None:
    """Lay out what the server reads: a copy of the models, so that Python's caches never end up in the release.

    ``beside``: the release's other folders that the models read.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(release / "model_repository", folder / "model_repository")
    for name in beside:
        (folder / name).symlink_to((release / name).resolve())


def _program(triton: installation.Installation, folder: Path, addresses: Addresses) -> Program:
    shm_prefix = shm_prefix_of(addresses)
    command = [
        str(triton.program),
        f"--model-repository={folder / 'model_repository'}",
        f"--backend-directory={folder / 'backends'}",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
        f"--cache-directory={triton.caches}",
        "--model-control-mode=explicit",
        "--load-model=*",
        *control.close(folder),
        "--disable-auto-complete-config",
        f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
        *addresses.options(),
    ]
    return Program(command, triton.variables(), folder, folder, shm_prefix)


def _start(program: Program, log: Path) -> subprocess.Popen[bytes]:
    supervising = [sys.executable, "-m", "trtpipe.triton_repo.supervisor"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as log_file:
        return subprocess.Popen(
            [*supervising, str(os.getpid()), program.shm_prefix, str(STOP_GRACE_S), *program.command],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            cwd=program.start,
            env=program.variables,
            start_new_session=True,
        )


def _wait_until_ready(
    supervisor: subprocess.Popen[bytes],
    addresses: Addresses,
    log: Path,
    deadline: float,
    is_unwanted: Callable[[], bool],
) -> None:
    """Return once a request has been answered: a model that can't pass texts reports ready all the same."""
    while not is_ready(addresses.http_url):
        if supervisor.poll() is not None:
            raise ToolFailed(triton_log.why_ended(log), where=str(log), fix="see the log")
        if is_unwanted():
            raise ToolFailed("Triton was stopped while it started", where=str(log), fix="start it again")
        if time.monotonic() > deadline:
            raise ToolFailed(
                f"Triton was not ready in time\n{tail(log)}",
                where=str(log),
                fix="see the log; a busy or small machine may need a higher serving.ready_timeout_s",
            )
        time.sleep(POLL_S)
    remaining_s = max(deadline - time.monotonic(), POLL_S)
    client.ask(addresses.http_url, "Hello", max_tokens=1, time_limit_s=remaining_s)


def is_ready(http_url: str) -> bool:
    """True where the server answers requests. Its own health does not tell: that ignores unloaded models."""
    try:
        return httpx.get(f"{http_url}/v2/models/ensemble/ready", timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    """End the server: requests in flight first. Only the supervisor is signalled; it takes care of the rest."""
    supervisor.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        supervisor.wait(STOP_GRACE_S + 10)
    # Empty, unless somebody has killed the supervisor itself.
    kill_group(supervisor)
