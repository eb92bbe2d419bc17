"""The line is upstream's, but for the differences that its module names."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from trtpipe.engines.trtllm.launch.line import TRITON, Ports, leader

# get_cmd of triton_backend/scripts/launch_triton_server.py, NVIDIA/TensorRT-LLM, stored text of the 1.x line: the
# options of each rank, without what its own switches add (log, multi-model, multimodal memory)
EVERY_RANK = ["--model-repository", "--exit-timeout-secs", "--grpc-port", "--http-port", "--metrics-port",
              "--disable-auto-complete-config", "--backend-config"]  # fmt: skip
OTHER_RANKS = ["--model-control-mode", "--load-model"]


def by_rank(line: list[str]) -> list[list[str]]:
    assert line[:3] == ["mpirun", "--allow-run-as-root", "--tag-output"]
    parts: list[list[str]] = [[]]
    for word in line[3:]:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_each_rank_has_upstream_s_options_and_no_other(ranks: int) -> None:
    parts = by_rank(leader(ranks, PurePosixPath("/models"), Ports(), shm_prefix="trtpipe_"))
    assert len(parts) == ranks
    for rank, words in enumerate(parts):
        assert words[:3] == ["-n", "1", TRITON]
        options = [word.partition("=")[0] for word in words[3:]]
        assert sorted(options) == sorted(EVERY_RANK + (OTHER_RANKS if rank else []))
        assert f"--backend-config=python,shm-region-prefix-name=trtpipe_{rank}_" in words
        assert ("--load-model=tensorrt_llm" in words) == bool(rank), "rank 0 loads the whole repository"


def test_ports_and_repository_are_those_given() -> None:
    first, *_ = by_rank(leader(1, PurePosixPath("/models"), Ports(1, 2, 3), shm_prefix="", program="/bin/triton"))
    assert first[2] == "/bin/triton"
    assert {"--model-repository=/models", "--http-port=1", "--grpc-port=2", "--metrics-port=3"} <= set(first)
