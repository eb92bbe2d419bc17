"""Model control is closed to all who do not hold the key; the real Triton: tests/e2e/test_control.py."""

import stat
from pathlib import Path

import pytest

from stand_in_triton import stand_in_triton
from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import control, server
from trtpipe.triton_repo.installation import Installation


def test_a_server_is_started_with_model_control_closed(tmp_path: Path) -> None:
    triton = Installation(tmp_path, tmp_path, tmp_path, "3.11")
    command = server._program(triton, tmp_path, server.Addresses("127.0.0.1", 1, 2, 3)).command

    closed = f"model-repository,shared-memory,trace,logging:trtpipe-control-key={control.key_of(tmp_path)}"
    assert f"--http-restricted-api={closed}" in command
    assert f"--grpc-restricted-protocol={closed}" in command


def test_each_start_has_a_key_of_its_own_that_its_user_alone_can_read(tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
        control.close(folder)

    assert len({control.key_of(folder) for folder in folders}) == 2
    assert stat.S_IMODE((folders[0] / control.KEY_FILE).stat().st_mode) == 0o600


def test_a_reload_sends_the_key(tmp_path: Path) -> None:
    control.close(tmp_path)
    with stand_in_triton() as triton:
        control.reload(triton.url, tmp_path, time_limit_s=5)

    assert triton.headers[0][control.HEADER] == control.key_of(tmp_path)


def test_what_keeps_a_reload_from_happening_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnfit, match="no server runs here"):
        control.reload("http://127.0.0.1:1", tmp_path, time_limit_s=5)
    control.close(tmp_path)
    with pytest.raises(EnvironmentUnfit, match="no server answers"):
        control.reload("http://127.0.0.1:1", tmp_path, time_limit_s=5)
    with stand_in_triton() as triton:
        triton.status, triton.pieces = 400, [b'{"error": "vLLM does not load"}']
        with pytest.raises(ToolFailed, match=r"answered 400: .*vLLM does not load"):
            control.reload(triton.url, tmp_path, time_limit_s=5)
