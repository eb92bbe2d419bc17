"""May this engine run here? Asked before it is packaged, promoted, rolled back to and served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.chain.trtllm_engine import require_here
from trtpipe.engines.trtllm.built import inspection, lock, request
from trtpipe.engines.trtllm.launch import compose
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.triton_repo.trtllm_repository import LAUNCH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact
    from trtpipe.engines.trtllm.built.inspection import Inspection
    from trtpipe.engines.trtllm.built.request import Request


def require(release: Artifact, note: Callable[[str], None]) -> None:
    """Raise everything that keeps a release's engine from running on this machine; the local one runs anywhere.

    ``note`` gets what could not be compared.
    """
    engine = release.path / "engine"
    if not (engine / "engine.json").is_file():
        for said in require_engine(engine, compose.image_of(release.path / LAUNCH))[2]:
            note(said)


def require_engine(folder: Path, serving_image: str | None = None) -> tuple[Inspection, Request, list[str]]:
    """Return what the TensorRT-LLM engine in ``folder`` is and was asked to be, and what could not be compared.

    ``serving_image``: the one that serves where TensorRT-LLM is not on the host; by default its target's.

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
    notes: list[str] = []
    try:
        notes = require_here(found, serving_image)
    except TrtpipeError as fault:
        problems += fault.each()
    raise_all(problems)
    return found, asked, notes
