"""Ports: whether they are free, and who holds them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trtpipe.errors import EnvironmentUnfit, raise_all

LISTEN = "0A"  # include/net/tcp_states.h


def require_free(host: str, ports: dict[str, int]) -> None:
    """Raise EnvironmentUnfit for each of ``ports`` (by purpose) that can't be bound on ``host``."""
    raise_all([*faults(host, ports)])


def faults(host: str, ports: dict[str, int]) -> Iterator[EnvironmentUnfit]:
    """Yield the ports that can't be bound, and who holds each."""
    for purpose, port in ports.items():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do: a port in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as fault:
                yield EnvironmentUnfit(
                    f"{purpose} port {port} is not available: {_holder(port) or fault.strerror}",
                    where=f"serving.{purpose}_port",
                    fix="stop that process, or choose another port",
                )


def _holder(port: int) -> str | None:
    """Describe the process that listens on ``port``, as far as this user may see it."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in Path("/proc").glob("[0-9]*"):
        if sockets & _open_files(process):
            return f"process {process.name} ({_name(process)}) listens on it"
    return "a process of another user listens on it" if sockets else None


def _open_files(process: Path) -> set[str]:
    """Return the targets of a process's descriptors; none where it is gone or another user's."""
    targets = set()
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                targets.add(str(link.readlink()))
    return targets


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "ended meanwhile"


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if table.exists():
            for line in table.read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == LISTEN and int(local.rsplit(":", 1)[1], 16) == port:
                    inodes.add(rest[5])
    return inodes
