"""May this engine run here? Asked before it is packaged, promoted, rolled back to and served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.chain.trtllm_engine import require_here
from trtpipe.engines.trtllm.built import inspection, lock, request
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact
    from trtpipe.engines.trtllm.built.inspection import Inspection
    from trtpipe.engines.trtllm.built.request import Request


def require(release: Artifact) -> None:
    """Raise everything that keeps a release's engine from running on this machine; the local one runs anywhere."""
    engine = release.path / "engine"
    if not (engine / "engine.json").is_file():
        require_engine(engine)


def require_engine(folder: Path) -> tuple[Inspection, Request]:
    """Return what the TensorRT-LLM engine in ``folder`` is and was asked to be.

    Raises, all at once, what it is not (ConfigError) and what its lock has against this machine (EnvironmentUnfit);
    Stale where a file is not the one that was recorded.
    """
    lock.read(folder)
    asked = request.read(folder)
    if asked is None:
        raise ConfigError(
            "the engine does not say what it was asked for",
            where=str(folder / request.REQUEST),
            fix="build it with `trtpipe build-engine`",
        )
    found = inspection.inspect(folder, asked.target)
    problems: list[TrtpipeError] = [
        ConfigError(finding.what, where=finding.where, fix=finding.fix) for finding in found.refusals
    ]
    try:
        require_here(found)
    except TrtpipeError as fault:
        problems += fault.each()
    raise_all(problems)
    return found, asked
