"""Every artifact of the real chain keeps what its kind promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts import broken
from trtpipe.core.artifacts import FOLDERS, Kind
from trtpipe.core.store import Store

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_promises_are_kept(workspace: Path, kind: Kind) -> None:
    """The newest only: an older one may have been made by code that promised less."""
    assert broken(Store(workspace).all(kind)[-1]) == []
