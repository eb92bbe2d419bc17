"""The versions of a quantizer's environment are compared before anything is loaded."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from trtpipe.errors import ConfigError, EnvironmentUnfit
from trtpipe.quantization.kinds import environments
from workspaces import REPOSITORY


def test_o_20_what_differs_is_listed_with_the_commands_that_make_it_right(tmp_path: Path) -> None:
    # this very environment has a newer transformers, and no AutoAWQ
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    python = environments.python_of("autoawq", tmp_path)
    with pytest.raises(
        EnvironmentUnfit, match=r"autoawq is not installed, tested 0.2.9; transformers 5.*tested 4.51.3"
    ) as caught:
        environments.versions("autoawq", Path(sys.executable))
    assert "--no-build-isolation autoawq==0.2.9" in str(caught.value.fix)
    assert python == tmp_path / "bin/python"


def test_no_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="runs in an environment of its own, and none is given") as caught:
        environments.python_of("modelopt", None)
    assert "nvidia-modelopt==0.47.0" in str(caught.value.fix)
    with pytest.raises(ConfigError, match="there is no Python environment") as caught:
        environments.python_of("modelopt", tmp_path)
    assert caught.value.where == str(tmp_path)


def test_the_tested_versions_are_those_of_the_extras() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for kind, tested in environments.TESTED.items():
        assert {f"{name}=={version}" for name, version in tested.versions.items()} <= set(extras[kind])
