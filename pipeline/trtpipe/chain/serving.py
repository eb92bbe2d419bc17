"""How a workspace serves its releases: where each listens, what the front is told of it, where it logs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from trtpipe.chain import fronted, released
from trtpipe.config.load import Workspace
from trtpipe.core.artifacts import Artifact
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError
from trtpipe.front.settings import Served
from trtpipe.triton_repo.server import Addresses, Server

PORT_MAX = 65535


@dataclass(frozen=True)
class Serving:
    """``api_key``: of the environment. ``note`` gets warnings about a start."""

    space: Workspace
    store: Store
    api_key: str | None
    note: Callable[[str], None]

    @property
    def addresses(self) -> Addresses:
        return released.addresses_of(self.space)

    @property
    def second(self) -> Addresses:
        """Return where a release listens that is started beside another one. Raises ConfigError."""
        first, found = self.addresses, self.addresses.higher(self.space.config.serving.second_ports_up)
        second = set(found.by_purpose.values())
        if second & set(first.by_purpose.values()) or max(second) > PORT_MAX:
            raise ConfigError(
                f"the ports of every second release would be {', '.join(map(str, sorted(second)))}",
                where="serving.second_ports_up",
                fix=f"choose another number: none may be another port of Triton's, or above {PORT_MAX}",
            )
        return found

    def log(self, at: Addresses) -> Path:
        return self.store.state / "logs" / ("serve.log" if at == self.addresses else "serve-second.log")

    def served(self, release: Artifact, at: Addresses) -> Served:
        """Return what the front is told. Raises as ``fronted.served`` does."""
        return fronted.served(self.space, release, at.http_url, self.api_key)

    def start(
        self, release: Artifact, at: Addresses, is_unwanted: Callable[[], bool] = lambda: False
    ) -> AbstractContextManager[Server]:
        """Serve within a ``with`` block; see ``released.running``."""
        return released.running(
            self.space,
            release,
            at,
            state=self.store.state,
            log=self.log(at),
            note=self.note,
            is_unwanted=is_unwanted,
        )
