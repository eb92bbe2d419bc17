"""Where the releases of a workspace listen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.chain.serving import Serving
from trtpipe.config.load import workspace
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError
from workspaces import write_config


def serving(folder: Path, *overrides: str) -> Serving:
    write_config(folder)
    return Serving(workspace(folder / "trtpipe.yaml", overrides), Store(folder), None, lambda text: None)


def test_every_second_release_has_ports_and_a_log_of_its_own(tmp_path: Path) -> None:
    found = serving(tmp_path, "serving.second_ports_up=5")

    assert found.second.by_purpose == {"http": 8005, "grpc": 8006, "metrics": 8007}
    assert found.log(found.second) != found.log(found.addresses)


@pytest.mark.parametrize("setting", ["serving.second_ports_up=2", "serving.http_port=65530"])
def test_ports_that_can_t_be_are_refused(tmp_path: Path, setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = serving(tmp_path, setting).second
    assert caught.value.where == "serving.second_ports_up"
