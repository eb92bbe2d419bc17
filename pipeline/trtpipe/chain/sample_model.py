"""The sample model for a plan, which reads no weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.chain.foresight import Foresight, NotMade
from trtpipe.core.store import Store
from trtpipe.errors import EnvironmentUnfit
from trtpipe.sample import stage as sample

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.config.load import Workspace


def folder(space: Workspace) -> Path:
    """Return the folder of the sample as it was made in the workspace, else one with its config.json alone."""
    try:
        return Foresight(Store(space.root)).obtain(sample.stage(space.root)).path
    except (NotMade, EnvironmentUnfit):  # not made, or what makes it is not installed
        return sample.DIMENSIONS
