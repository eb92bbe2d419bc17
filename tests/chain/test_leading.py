"""What is missing where a TensorRT-LLM release can't be started."""

from __future__ import annotations

from pathlib import Path

import pytest

from standins import tritonserver
from trtpipe.chain import leading
from trtpipe.engines.trtllm.launch import line


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
