"""Ports: whether they are free, and who holds them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trtpipe.core import hosts
from trtpipe.errors import EnvironmentUnfit, raise_all

LISTEN = "0A"  # include/net/tcp_states.h


def require_free(host: str, ports: dict[str, int]) -> None:
    """Raise EnvironmentUnfit for each of ``ports`` (by purpose) that can't be bound on ``host``."""
    raise_all([*faults(host, ports)])


def faults(host: str, ports: dict[str, int]) -> Iterator[EnvironmentUnfit]:
    """Yield the ports that can't be bound, and who holds each; only the host, where that is no address to bind."""
    for purpose, port in ports.items():
        try:
            hosts.listener(host, port).close()
        except OSError as fault:
            if isinstance(fault, socket.gaierror) or fault.errno == errno.EADDRNOTAVAIL:
                yield EnvironmentUnfit(
                    f"nothing can listen on the address {host}: {fault.strerror}",
                    where=f"port {port}",
                    fix="give an address of this machine",
                )
                return
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
