from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from release.releases import Releases

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    return Releases(tmp_path)
