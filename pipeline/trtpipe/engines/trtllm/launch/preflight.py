"""The checks before a start, for this program; a release makes the same ones by itself (`__main__.py`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.built import folder
from trtpipe.engines.trtllm.launch import checks, machine
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.errors import raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.built.lock_rules import Locked
    from trtpipe.engines.trtllm.findings import Finding


def preflight(engine: Path, lock: Locked, ports: Ports | None = None, *, contained: bool = False) -> list[Finding]:
    """Return warnings about a start of an engine on this machine.

    ``contained``: a container starts it, which brings its own programs and /dev/shm. Raises ConfigError where the
    engine is not whole, EnvironmentUnfit with everything else that stands against the start, all at once.
    """
    found = checks.check(folder.read(engine), lock, machine.look(os.environ), ports or Ports(), contained=contained)
    raise_all(found.refusals)
    return found.warnings
