"""What stands against a start is told before anything is loaded, all at once."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
from typing import TYPE_CHECKING, Any

import pytest

import launches
from standins import nvidia_smi
from trtpipe.engines.trtllm.build import gpu_query
from trtpipe.engines.trtllm.built import folder
from trtpipe.engines.trtllm.launch import checks, machine
from trtpipe.engines.trtllm.launch.line import Ports

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.launch.checks import Outcome
    from trtpipe.engines.trtllm.launch.machine import Machine


class Here:
    """A machine with eight idle A100s and all programs, as the facts are asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs, self.engine = folder / "bin", launches.engine(folder / "engine")
        self.programs.mkdir()
        for name in ("mpirun", "tritonserver"):
            (self.programs / name).write_text("#!/bin/sh\n")
            (self.programs / name).chmod(0o755)
        (folder / "backends/tensorrtllm").mkdir(parents=True)
        nvidia_smi.write(self.programs)
        (self.programs / "cat").symlink_to(str(shutil.which("cat")))
        monkeypatch.setenv("PATH", str(self.programs))
        self.ports = Ports(*launches.free_ports(3))

    def look(self, environment: dict[str, str] | None = None) -> Machine:
        found = machine.look(environment or {}, "tritonserver")
        return dataclasses.replace(found, tensorrt_llm="1.2.1", tensorrt="10.14.1.48", shm_free_mib=4096)

    def check(self, found: Machine | None = None, **given: Any) -> Outcome:
        return checks.check(folder.read(self.engine), launches.locked(), found or self.look(), self.ports, **given)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(tmp_path, monkeypatch)


def said(outcome: Outcome) -> list[str]:
    return [fault.what for fault in outcome.refusals]


def test_a_triton_without_the_engines_backend_is_refused(here: Here) -> None:
    (here.programs.parent / "backends/tensorrtllm").rename(here.programs.parent / "backends/python")
    assert said(here.check()) == ["the engine is for Triton's backend tensorrtllm, and this Triton has python"]


def test_a_fit_machine_passes_without_a_word(here: Here) -> None:
    assert here.check() == checks.Outcome([], [])


def test_a_taken_port_is_told_once_with_its_holder(here: Here) -> None:
    with socket.create_server(("127.0.0.1", here.ports.grpc)):
        (one,) = said(here.check())
    assert one.startswith(f"grpc port {here.ports.grpc} is not available: process {os.getpid()} (")


def test_a_small_shared_memory_is_a_warning_with_the_size_needed(here: Here) -> None:
    outcome = here.check(dataclasses.replace(here.look(), shm_free_mib=64))
    assert outcome.refusals == []
    (warning,) = outcome.warnings
    assert warning.what == "/dev/shm has 64 MiB free, and 2,048 MiB are needed for 8 ranks (TP 8 x PP 1)"
    assert "--shm-size=2048m" in str(warning.fix)


def test_shared_memory_is_measured(here: Here) -> None:
    free_mib = shutil.disk_usage("/dev/shm").free >> 20
    assert machine.look({}).shm_free_mib == pytest.approx(free_mib, abs=64)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"tensorrt": "10.13.3.9"}, "built with TensorRT 10.14.1.48, running TensorRT 10.13.3.9"),
        ({"tensorrt_llm": "1.1.0"}, "built with TensorRT-LLM 1.2.1, running TensorRT-LLM 1.1.0"),
    ],
)
def test_another_version_is_refused_with_the_image(here: Here, changes: dict[str, str], line: str) -> None:
    outcome = here.check(dataclasses.replace(here.look(), **changes))
    assert said(outcome) == [line]
    assert "tritonserver:26.04-trtllm-python-py3" in str(outcome.refusals[0].fix)
    asked_elsewhere = here.check(dataclasses.replace(here.look(), **changes), software=False)
    assert asked_elsewhere == checks.Outcome([], [])


def test_another_gpu_is_refused(here: Here) -> None:
    nvidia_smi.write(here.programs, name="NVIDIA A10", capability="8.6", memory_mib=23028)
    assert said(here.check()) == [f"built for SM 80 ({launches.A100}), running on SM 86 (NVIDIA A10)"]


def test_too_few_gpus_and_hidden_ones_are_told_with_both_numbers(here: Here) -> None:
    count, hidden = said(here.check(here.look({"CUDA_VISIBLE_DEVICES": "0,1,2,3"})))
    assert count == "the engine has 8 ranks, one a GPU, and there are 4 GPUs"
    assert hidden == "CUDA_VISIBLE_DEVICES=0,1,2,3 shows 4 GPUs, and the engine has 8 ranks (TP 8 x PP 1)"


@pytest.mark.parametrize(
    ("shown", "indexes"),
    [
        ("", []),
        ("1", [1]),
        ("6, 4,5", [6, 4, 5]),
        ("0,9,2", [0]),
        ("0,,2", [0]),
        ("-1", []),
        ("2,-1,3", [2]),
        ("0,0", [0]),
        ("3,GPU-3a7c0de5,4", [3]),
        (f"{nvidia_smi.uuid(5)},{nvidia_smi.uuid(2)}", [5, 2]),
        ("GPU-5,GPU-8", [5]),
        ("GPU-", []),
        ("MIG-5a7c0de5-0000-4000-8000-000000000005", []),
    ],
)
def test_the_gpus_are_those_that_cuda_shows_in_its_order(here: Here, shown: str, indexes: list[int]) -> None:
    assert [device.index for device in here.look({"CUDA_VISIBLE_DEVICES": shown}).devices] == indexes


def test_a_gpu_is_judged_by_its_own_memory_and_named_by_its_own_number(here: Here) -> None:
    other, own = (f"{nvidia_smi.uuid(number)}, 471{number}, python3, 81000\n" for number in (0, 5))
    nvidia_smi.write(here.programs, free_mib={0: 0, 5: 0}, processes=other + own)
    shown = here.look({"CUDA_VISIBLE_DEVICES": f"4,{nvidia_smi.uuid(5)},6,7"})
    fault, *_ = [one for one in here.check(shown).refusals if "MiB free" in one.what]
    assert fault.what == (
        "GPU 5 has 0 MiB free, and the engine of rank 1 alone is 1 MiB: process 4715 (python3) holds 81000 MiB"
    )
    assert fault.where == "nvidia-smi, GPU 5"
    (warning,) = here.check(shown).warnings
    assert warning.what == "81,920 of 81,920 MiB of GPU 5 are held already"
    assert warning.why == "process 4715 (python3) holds 81000 MiB"


def test_a_gpu_that_no_rank_uses_is_not_spoken_of(here: Here) -> None:
    nvidia_smi.write(here.programs, count=9, free_mib={8: 0})
    assert here.check() == checks.Outcome([], [])


def test_memory_that_another_process_holds_is_told_with_the_process(here: Here) -> None:
    held = "".join(f"{nvidia_smi.uuid(number)}, 4711, tritonserver, 79000\n" for number in range(8))
    nvidia_smi.write(here.programs, free_mib=2000, processes=held)
    outcome = here.check()
    assert outcome.refusals == [], "the engine itself fits"
    assert len(outcome.warnings) == 8
    assert outcome.warnings[0].what == "79,920 of 81,920 MiB of GPU 0 are held already"
    assert outcome.warnings[0].why == "process 4711 (tritonserver) holds 79000 MiB"


def test_an_engine_that_does_not_fit_is_refused(here: Here) -> None:
    nvidia_smi.write(here.programs, free_mib=0, processes=f"{nvidia_smi.uuid(0)}, 4711, python3, 81000\n")
    first, *others = said(here.check())
    assert first == (
        "GPU 0 has 0 MiB free, and the engine of rank 0 alone is 1 MiB: process 4711 (python3) holds 81000 MiB"
    )
    assert len(others) == 7


def test_an_old_driver_is_refused(here: Here) -> None:
    nvidia_smi.write(here.programs, driver="550.163.01")
    assert said(here.check())[0].startswith("the driver is 550.163.01, and the engine's CUDA needs 580 or newer, or br")
    nvidia_smi.write(here.programs, driver="535.183.01")
    assert said(here.check()) == []
    assert [warning.what.partition(":")[0] for warning in here.check().warnings] == [
        "driver 535.183.01 is older than 580"
    ]


def test_everything_is_told_at_once_also_without_a_driver(here: Here) -> None:
    for name in ("mpirun", "tritonserver", "nvidia-smi"):
        (here.programs / name).unlink()
    with socket.create_server(("127.0.0.1", here.ports.http)):
        found = said(here.check())
    assert found[0] == "no NVIDIA driver: there is no nvidia-smi"
    assert found[1:3] == ["mpirun is not here", "tritonserver is not here"]
    assert found[3].startswith(f"http port {here.ports.http} is not available")
    assert len(found) == 4


def test_versions_that_nothing_tells_are_a_warning(here: Here) -> None:
    (warning,) = here.check(dataclasses.replace(here.look(), tensorrt=None)).warnings
    assert warning.what == "the version of TensorRT here was not compared with the lock"


def test_a_driver_that_hangs_is_told(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.programs / "nvidia-smi").write_text("#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(gpu_query, "QUERY_LIMIT_S", 0.2)
    assert said(here.check()) == ["the NVIDIA driver did not answer within 0.2 s"]
