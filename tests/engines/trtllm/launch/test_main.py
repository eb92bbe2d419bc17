"""A release starts itself: the launcher that it carries, with a real mpirun and a stand-in for tritonserver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import launches
from standins import nvidia_smi, triton_ranks
from trtpipe.core import digest
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.engines.trtllm.launch.rank_log import TAG

if TYPE_CHECKING:
    from collections.abc import Iterator

RANKS = 3


class Site:
    """A release of three ranks on a machine of stand-ins; Open MPI is the real one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = Ports(*launches.free_ports(3))
        self.release = launches.release(folder / "release", tp=RANKS)
        self.programs = folder / "bin"
        self.programs.mkdir()
        (folder / "backends/tensorrtllm").mkdir(parents=True)
        (self.programs / "mpirun").symlink_to(Path(sys.executable).with_name("mpirun"))
        nvidia_smi.write(self.programs, count=RANKS)
        self.triton = triton_ranks.install(self.programs)
        self.children: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        ports = [f"--{purpose}-port={port}" for purpose, port in self.ports.by_purpose().items()]
        # -S: no packages at all; -E: nothing of the tests' own path
        line = [sys.executable, "-S", "-E", str(self.release / "launch/start"), str(self.release), *ports]
        own = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.folder)}
        child = subprocess.Popen(
            [*line, f"--tritonserver={self.triton}", *words],
            env=own | triton_ranks.environment(self.folder) | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
        )
        self.children.append(child)
        return child

    def run(self, *words: str, code: int, **environment: str) -> str:
        child = self.start(*words, **environment)
        out, said = child.communicate(timeout=60)
        assert child.returncode == code, out + said
        return said

    def told(self) -> dict[int, dict[str, object]]:
        return {rank: json.loads(path.read_text()) for rank in range(RANKS)
                if (path := self.folder / f"rank{rank}.json").is_file()}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for child in made.children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def test_it_starts_as_many_ranks_as_the_engine_has_and_ends_them(site: Site) -> None:
    packaged = digest.of_folder(site.release)
    child = site.start()
    assert child.stderr is not None
    said = ""
    while "ready after" not in said:
        line = child.stderr.readline()
        assert line, f"{said}{child.communicate()}"
        said += line
    url = f"http://127.0.0.1:{site.ports.http}/v2/models/ensemble/ready"
    assert urllib.request.urlopen(url, timeout=5).status == 200
    told = site.told()
    assert len(told) == RANKS
    home = str(site.release / "model_repository/tensorrt_llm")
    assert {rank["folder"] for rank in told.values()} == {home}, "../../engine is seen from there"
    assert {rank["no_bytecode"] for rank in told.values()} == {"1"}, "Triton's Python models lie in the release"
    child.send_signal(signal.SIGTERM)
    out, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert "stopped by SIGTERM" in said
    assert digest.of_folder(site.release) == packaged, "a release that was started is still what its record says"
    assert {int(found[1]) for line in out.splitlines() if (found := TAG.match(line))} == {0, 1, 2}


def test_a_hang_ends_with_the_last_line_of_each_rank(site: Site) -> None:
    said = site.run("--time-limit-s=8", code=5, STANDIN_HANG_RANK="1")
    assert "error: the engine was not ready within 8 s" in said
    assert "  | rank 0: rank 0 has loaded its engine" in said
    assert "  | rank 1: NCCL INFO waiting for a peer" in said
    assert "  | rank 2: rank 2 has loaded its engine" in said


def test_a_rank_that_ends_ends_the_start_with_what_it_said(site: Site) -> None:
    said = site.run(code=5, STANDIN_FAIL_RANK="2")
    assert "error: the engine did not start: exit status 1" in said
    assert "  | rank 2: no kernel image is available for execution on the device" in said


@pytest.mark.parametrize(
    ("words", "environment", "line"),
    [
        (["--ranks=1"], {}, "the engine has 3 ranks (TP 3 x PP 1), and 1 were asked for"),
        ([], {"OMPI_COMM_WORLD_SIZE": "2"}, "the engine has 3 ranks (TP 3 x PP 1), and MPI has started 2 of this"),
    ],
)
def test_another_number_of_ranks_is_refused_before_anything_runs(
    site: Site, words: list[str], environment: dict[str, str], line: str
) -> None:
    assert f"error: {line}" in site.run(*words, code=2, **environment)
    assert site.told() == {}


def test_a_manual_mpirun_of_it_is_refused(site: Site) -> None:
    command = [site.programs / "mpirun", "--allow-run-as-root", "-n", "2", sys.executable, "-S", "-E"]
    environment = os.environ | triton_ranks.environment(site.folder)
    done = subprocess.run(
        [*command, site.release / "launch/start", site.release], capture_output=True, text=True, env=environment,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "the engine has 3 ranks (TP 3 x PP 1), and MPI has started 2 of this launcher" in done.stderr


def test_all_problems_are_told_at_once_and_nothing_is_started(site: Site) -> None:
    nvidia_smi.write(site.programs, name="NVIDIA A10", capability="8.6", memory_mib=23028, driver="525.1", count=2)
    said = site.run(code=4)
    for part in (
        "the driver is 525.1, and the engine's CUDA needs 580 or newer, or branch 535 or 570 on a data-centre GPU",
        "the engine has 3 ranks, one a GPU, and there are 2 GPUs",
        f"built for SM 80 ({launches.A100}), running on SM 86 (NVIDIA A10)",
    ):
        assert f"error: {part}" in said
    assert "warning: the version of TensorRT-LLM and of TensorRT here was not compared with the lock" in said
    assert site.told() == {}


def test_a_check_prints_the_line_and_starts_nothing(site: Site) -> None:
    said = site.run("--check", code=0)
    assert f"starting 3 ranks (TP 3 x PP 1): mpirun --allow-run-as-root --tag-output -n 1 {site.triton} " in said
    assert said.count(f"-n 1 {site.triton}") == RANKS
    assert site.told() == {}


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_an_engine_without_a_lock_is_not_started(site: Site, text: str | None) -> None:
    path = site.release / "engine/engine.lock.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert "the engine has no lock that can be read" in site.run(code=3)


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "soon"])
def test_a_time_limit_is_a_time(site: Site, seconds: str) -> None:
    assert "argument --time-limit-s: invalid seconds value" in site.run(f"--time-limit-s={seconds}", code=2)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "70000", "http"])
def test_a_port_is_a_port(site: Site, port: str) -> None:
    assert f"argument --http-port: invalid port value: '{port}'" in site.run("--check", f"--http-port={port}", code=2)


def test_ports_differ(site: Site) -> None:
    _, grpc, metrics = site.ports.by_purpose().values()
    said = site.run("--check", f"--http-port={grpc}", code=2)
    assert f"error: the ports must differ: http {grpc}, grpc {grpc}, metrics {metrics}" in said
    assert "Traceback" not in said
    assert site.told() == {}
