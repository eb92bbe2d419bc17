"""The real sample model, downloaded and converted once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.sample.stage import stage

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def sample_model(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Artifact:
    return Runner(Store(tmp_path_factory.mktemp("workspace")), Silent()).obtain(stage(cache))
