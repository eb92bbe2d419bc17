"""Clients for programs: ``from trtpipe.client import Client`` (or ``AsyncClient``)."""

from trtpipe.triton_repo.aio_client import AsyncClient
from trtpipe.triton_repo.client import Client
from trtpipe.triton_repo.exchange import NoServer, Options, OutOfTime, Piece, Refused

__all__ = ["AsyncClient", "Client", "NoServer", "Options", "OutOfTime", "Piece", "Refused"]
