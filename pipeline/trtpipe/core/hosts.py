"""Addresses of machines: what a name stands for, and how a number is written in a URL."""

from __future__ import annotations

import socket


def resolve(host: str) -> tuple[socket.AddressFamily, str]:
    """Return the numeric address of ``host``; of a name that has several, an IPv4 one. Raises OSError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:  # an empty label, or one that is too long
        raise socket.gaierror(socket.EAI_NONAME, "not the name of a host") from None
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, str(address[0])


def listener(host: str, port: int) -> socket.socket:
    """Take a port without listening on it yet. Raises OSError."""
    family, address = resolve(host)
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As servers do: a port in TIME_WAIT is free.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((address, port))
    except OSError:
        taken.close()
        raise
    return taken


def url(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
