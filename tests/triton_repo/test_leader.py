"""The line that starts a TensorRT-LLM release, and what is missing where it can't be started."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from standins import tritonserver
from trtpipe.triton_repo import leader
from trtpipe.triton_repo.server import Addresses

ADDRESSES = Addresses("127.0.0.1", 8000, 8001, 8002)
IMAGES = ("image:1", "image:2")


def ranks(count: int) -> list[list[str]]:
    words = leader.command("/opt/tritonserver/bin/tritonserver", count, ADDRESSES, Path("/release"), "shm_")
    text = shlex.join(words).removeprefix("mpirun --allow-run-as-root ")
    return [shlex.split(part) for part in text.split(" : ")]


def test_each_rank_is_a_triton_of_its_own_and_the_first_has_all_models() -> None:
    first, *others = ranks(8)
    assert len(others) == 7
    for number, line in enumerate((first, *others)):
        assert line[:3] == ["-n", "1", "/opt/tritonserver/bin/tritonserver"]
        assert "--model-repository=/release/model_repository" in line
        assert f"--backend-config=python,shm-region-prefix-name=shm_{number}_" in line
        assert "--http-port=8000" in line
    assert "--load-model=tensorrt_llm" not in first
    assert all({"--load-model=tensorrt_llm", "--model-control-mode=explicit"} < set(line) for line in others)


def test_a_single_rank_needs_no_mpi() -> None:
    (line,) = ranks(1)
    assert line[0] == "/opt/tritonserver/bin/tritonserver"
    assert "mpirun" not in line


def test_what_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(leader, "USUAL_PLACE", tmp_path / "nothing")
    found = leader.problems(8, IMAGES)
    assert [one.what.split(",")[0] for one in found] == ["there is no tritonserver here", "there is no mpirun here"]
    assert {one.fix for one in found} == {"run this in image:2, or one of image:1"}
    assert len(leader.problems(1, IMAGES)) == 1
    programs = tritonserver.install(tmp_path / "triton")
    monkeypatch.setenv("PATH", str(programs))
    assert leader.problems(8, IMAGES) == []
    (programs.parent / "backends/tensorrtllm").rmdir()
    (only,) = leader.problems(8, IMAGES)
    assert only.what == "this Triton has no backend tensorrtllm"
