"""`trtpipe reload`, and what `trtpipe serve` says of an address that others reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stand_in_triton import stand_in_triton
from trtpipe.cli import trtpipe
from trtpipe.core.store import Store
from trtpipe.errors import EnvironmentUnfit
from trtpipe.triton_repo import control
from workspaces import write_config


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("ports_up", [0, 10])
def test_the_server_of_the_workspace_is_told_to_load(folder: Path, ports_up: int) -> None:
    """Also on the ports that `serve --follow` uses for every second release."""
    with stand_in_triton() as triton:
        port = int(triton.url.rsplit(":", 1)[1])
        home = Store(folder).state / "triton" / str(port)
        home.mkdir(parents=True)
        control.close(home)
        result = CliRunner().invoke(trtpipe, ["reload", "--json", "--set", f"serving.http_port={port - ports_up}"])

    assert json.loads(result.stdout)["ok"], result.output
    assert triton.headers[0][control.HEADER] == control.key_of(home)


def test_ports_that_a_second_release_could_not_have_do_not_matter(folder: Path) -> None:
    result = CliRunner().invoke(trtpipe, ["reload", "--set", "serving.grpc_port=8010"])
    assert "no server runs here" in str(result.exception)


def test_without_a_server_there_is_nothing_to_load(folder: Path) -> None:
    result = CliRunner().invoke(trtpipe, ["reload"])
    assert isinstance(result.exception, EnvironmentUnfit)


@pytest.mark.parametrize(("host", "said"), [("0.0.0.0", True), ("127.0.0.1", False)])  # noqa: S104 - not bound
def test_serving_to_others_is_said(folder: Path, host: str, said: bool) -> None:
    result = CliRunner().invoke(trtpipe, ["serve", "--set", f"serving.host={host}"])
    assert ("asks for no API key" in result.stderr) is said
