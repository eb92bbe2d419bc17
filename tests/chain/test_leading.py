"""What is missing where a TensorRT-LLM release can't be started, and how a start that hangs ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import launches
from standins import nvidia_smi, triton_ranks, tritonserver
from trtpipe.chain import leading
from trtpipe.engines.trtllm.launch import line
from trtpipe.errors import ToolFailed
from trtpipe.triton_repo.server import Addresses


def test_what_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(line, "TRITON", str(tmp_path / "nothing"))
    found = leading.problems("1.2.1")
    assert [one.what.split(",")[0] for one in found] == ["there is no tritonserver here", "there is no mpirun here"]
    assert all("nvcr.io/nvidia/tritonserver:26.07-trtllm-python-py3" in str(one.fix) for one in found)
    programs = tritonserver.install(tmp_path / "triton")
    monkeypatch.setenv("PATH", str(programs))
    assert leading.problems("1.2.1") == []
    (programs.parent / "backends/tensorrtllm").rmdir()
    (only,) = leading.problems("1.2.1")
    assert only.what == "this Triton has no backend tensorrtllm"


def test_a_hang_ends_with_the_last_line_of_each_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a real mpirun."""
    release, programs = launches.release(tmp_path / "release", tp=2), tmp_path / "triton/bin"
    for folder in (release / "tokenizer", programs, programs.parent / leading.BACKEND):
        folder.mkdir(parents=True)
    (programs / "mpirun").symlink_to(Path(sys.executable).with_name("mpirun"))
    nvidia_smi.write(programs, count=2)
    triton_ranks.install(programs)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for name, value in triton_ranks.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STANDIN_HANG_RANK", "1")
    addresses, said = Addresses("127.0.0.1", *launches.free_ports(3)), list[str]()
    starting = leading.running(
        release, addresses, state=tmp_path / "state", log=tmp_path / "log", time_limit_s=8, note=said.append
    )
    with pytest.raises(ToolFailed, match="Triton was not ready in time") as caught, starting:
        pass
    assert "  | rank 0: rank 0 has loaded its engine\n  | rank 1: NCCL INFO waiting for a peer" in caught.value.what
