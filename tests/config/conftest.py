"""A folder with a config, a target and a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from config_files import CONFIG, POLICY, TARGET, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, config=CONFIG, target=TARGET, policy=POLICY)
    return tmp_path
