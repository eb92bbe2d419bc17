"""The lock says before the engine is loaded what TensorRT would say after minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launches import A100, locked
from trtpipe.engines.trtllm.built import lock, lock_rules
from trtpipe.engines.trtllm.built.lock import Lock
from trtpipe.engines.trtllm.built.lock_rules import Host
from trtpipe.errors import ConfigError, EnvironmentUnfit, TrtpipeError

NEEDED = "580 or newer, or branch 535 or 570 on a data-centre GPU"


def host(**changes: Any) -> Host:
    values: dict[str, Any] = {
        "tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48", "driver": "590.10", "gpu_names": [A100] * 8, "sms": [80] * 8,
    }  # fmt: skip
    return Host(**values | changes)


def reasons(kept: Lock, here: Host, ranks: int = 8) -> list[TrtpipeError]:
    with pytest.raises(TrtpipeError) as caught:
        lock.enforce(kept, here, ranks=ranks, where="release")
    return caught.value.each()


@pytest.mark.parametrize(
    ("image", "references"),
    [("i:1", ["i@sha256:a"]), ("i:1", ["i@sha256:b", "i@sha256:a"]), ("i:1", []), ("j:1", ["j@sha256:b"])],
    ids=["same", "one of several", "unknown", "another"],
)
def test_the_same_host_is_let_through(image: str, references: list[str]) -> None:
    lock.enforce(locked(), host(), ranks=8, where="release")
    built = locked(container_image="i:1", container_digest="sha256:a")
    lock.enforce(built, host(image=image, image_references=references), ranks=8, where="release")


@pytest.mark.parametrize(
    ("kept", "here", "said"),
    [
        ({}, {"tensorrt_llm": "1.1.0"}, "built with TensorRT-LLM 1.2.1, running TensorRT-LLM 1.1.0"),
        ({}, {"tensorrt": "10.13.3.9"}, "built with TensorRT 10.14.1.48, running TensorRT 10.13.3.9"),
        ({}, {"driver": "550.163"}, f"the driver is 550.163, and the engine's CUDA needs {NEEDED}"),
        ({"gpu_name": "NVIDIA GeForce RTX 4090"}, {"driver": "535.1", "gpu_names": ["NVIDIA GeForce RTX 4090"] * 8},
         f"the driver is 535.1, and the engine's CUDA needs {NEEDED}"),
        ({}, {"sms": [86] * 8, "gpu_names": ["NVIDIA A10"] * 8},
         f"built for SM 80 ({A100}), running on SM 86 (NVIDIA A10)"),
        ({"sm_by_rank": [90] * 7 + [89]}, {"sms": [90] * 8}, "built for SM 89, 90"),
        ({}, {"gpu_names": ["NVIDIA A100-SXM4-40GB"] * 8}, f"built for {A100}, running on NVIDIA A100-SXM4-40GB"),
        ({"container_image": "i:1", "container_digest": "sha256:a"},
         {"image": "i:1", "image_references": ["i@sha256:b", "j@sha256:c"]},
         "built in i:1 when that was sha256:a, and here it is i@sha256:b, j@sha256:c"),
        ({}, {"sms": [80] * 4}, "the engine has 8 ranks, one a GPU, and there are 4 GPUs"),
    ],
)  # fmt: skip
def test_another_version_or_gpu_is_refused(kept: dict[str, Any], here: dict[str, Any], said: str) -> None:
    (problem,) = reasons(locked(**kept), host(**here))
    assert isinstance(problem, EnvironmentUnfit)
    assert said in problem.what
    assert problem.where == "release"
    if "tensorrt_llm" in here:
        assert "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3" in (problem.fix or "")


@pytest.mark.parametrize(
    ("driver", "noted"), [("535.261.03", True), ("570.10", True), ("580.1", False), ("595.1", False)]
)
def test_an_older_branch_that_the_images_take_passes_with_a_note(driver: str, *, noted: bool) -> None:
    lock.enforce(locked(), host(driver=driver), ranks=8, where="release")
    said = [f"driver {driver} is older than 580: it runs this CUDA through NVIDIA's forward-compatibility package"]
    assert [one.partition(",")[0] for one in lock_rules.notes(locked(), host(driver=driver))] == (said if noted else [])


def test_all_reasons_come_at_once() -> None:
    assert len(reasons(locked(), host(tensorrt_llm="1.1.0", tensorrt="10.13.3.9", driver="525.1", sms=[80]))) == 4


def test_a_lock_is_read_back_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    lock.write(tmp_path, locked())
    assert lock.read(tmp_path) == locked()
    path = tmp_path / lock.LOCK
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sm_by_rank": []}))
    with pytest.raises(ConfigError, match="the lock is damaged: sm_by_rank"):
        lock.read(tmp_path)
    path.unlink()
    with pytest.raises(ConfigError, match="the engine has no lock"):
        lock.read(tmp_path)
