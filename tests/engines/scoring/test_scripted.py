"""A scoring script as a stage runs it: its words, what it tells, and what is made of its end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from standins import tritonserver
from standins import trtllm_build as standin
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Making
from trtpipe.engines.scoring import scripted
from trtpipe.engines.scoring.scripted import Place
from trtpipe.engines.trtllm.build import container, grammar
from trtpipe.engines.trtllm.build.probe import Installation
from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from engines.scoring.conftest import Scored

REPOSITORY = "nvcr.io/nvidia/tensorrt-llm/release"
IMAGE = container.Image(f"{REPOSITORY}:1.2.1", (f"{REPOSITORY}@sha256:{'ab' * 32}",))


@pytest.fixture
def making(tmp_path: Path) -> Making:
    (tmp_path / "run").mkdir()
    (tmp_path / "made").mkdir()
    return Making(folder=tmp_path / "made", log=tmp_path / "run/log.txt", reporter=Silent())


def on_host(folder: Path) -> Installation:
    programs = standin.install(folder / "tensorrt-llm", grammar.FILE)
    return Installation("1.2.1", "10.14.1.48", str(programs / "trtllm-build"))


def run(making: Making, installation: Installation, expected: Scored, **changes: Any) -> dict[str, Any]:
    job = {"model": str(expected.model), "rows": str(expected.rows)} | changes
    read = [expected.model, expected.rows.parent]
    place = Place(installation, 120.0)
    return scripted.score(scripted.BASELINE, job, place, making, read=read, ranks=None)


def test_a_script_leaves_scores_figures_and_how_to_run_it_again(making: Making, tmp_path: Path, llama: Scored) -> None:
    figures = run(making, on_host(tmp_path), llama)
    assert figures["tokens"] == 9
    scripted.require_scores(making.folder / "scores.npz", making)
    assert [path.name for path in making.folder.iterdir()] == ["scores.npz"]
    script = (making.log.parent / "reproduce.sh").read_text()
    assert "huggingface_script.py" in script
    assert str(making.folder) not in script


def test_the_end_of_one_that_fails_is_the_logs(making: Making, tmp_path: Path, llama: Scored) -> None:
    with pytest.raises(ToolFailed, match=r"huggingface_script\.py failed: exit status 1") as caught:
        run(making, on_host(tmp_path), llama, rows=str(tmp_path / "nothing.jsonl"))
    assert "No such file or directory" in caught.value.what


def test_a_refusal_is_told_in_the_scripts_own_words(making: Making, tmp_path: Path, llama: Scored) -> None:
    installation = on_host(tmp_path)
    python = Path(installation.program).with_name("python-of-the-stand-in")
    python.write_text(f"#!{sys.executable}\nprint('trtpipe-note slow')\nprint('trtpipe-refusal no such thing')\n"
                      "raise SystemExit(1)\n")  # fmt: skip
    with pytest.raises(ToolFailed) as caught:
        run(making, installation, llama)
    assert (caught.value.what, caught.value.where) == ("no such thing", str(making.log))


@dataclass
class Watching(Silent):
    """Keeps the progress that is shown."""

    shown: list[tuple[int, int]] = field(default_factory=list)

    def progress(self, label: str, done: int, total: int) -> None:
        self.shown.append((done, total))


LINES = """trtpipe-progress 1 9
trtpipe-progress 2 9trtpipe-progress 3
trtpipe-progress
trtpipe-progress 4 9[TensorRT-LLM][WARNING] of another rank
[TensorRT-LLM][INFO] without an endtrtpipe-progress 5 9
Loading:  50%trtpipe-note slowtrtpipe-refusal no such thing
trtpipe-refusal another rank's
"""


def test_what_ranks_tell_at_once_is_told_apart(making: Making, tmp_path: Path, llama: Scored) -> None:
    installation, watching = on_host(tmp_path), Watching()
    python = Path(installation.program).with_name("python-of-the-stand-in")
    python.write_text(f"#!{sys.executable}\nprint({LINES!r}, end='')\nraise SystemExit(1)\n")
    with pytest.raises(ToolFailed) as caught:
        run(replace(making, reporter=watching), installation, llama)
    assert caught.value.what == "no such thing"
    assert watching.shown == [(1, 9), (2, 9), (5, 9)]


def test_scores_that_are_none_are_refused(making: Making) -> None:
    with pytest.raises(ToolFailed, match="there are no scores"):
        scripted.require_scores(making.folder / "scores.npz", making)


def test_in_a_container_all_that_the_job_names_is_there(
    making: Making, tmp_path: Path, llama: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = standin.install(tmp_path / "tensorrt-llm", grammar.FILE)
    docker = standin.install_docker(tmp_path / "docker", programs, None)
    monkeypatch.setenv("PATH", str(docker), prepend=":")
    figures = run(making, Installation("1.2.1", "10.14.1.48", "trtllm-build", "docker", IMAGE), llama)
    assert figures["rows"] == 3
    words = (docker / "calls.txt").read_text().splitlines()[0].split()
    assert IMAGE.references[0] in words, "the bytes that were probed, whatever the tag has come to mean"
    assert IMAGE.name not in words
    mounts = {word for before, word in pairwise(words) if before == "--volume"}
    assert mounts == {
        *(f"{path}:{path}:ro" for path in (scripted.HERE, llama.model, llama.rows.parent)),
        *(f"{path}:{path}" for path in (making.folder, making.log.parent)),
    }


def test_an_engine_runs_in_as_many_processes_as_it_has_ranks(
    making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llama: Scored
) -> None:
    monkeypatch.setenv("PATH", str(tritonserver.install(tmp_path / "triton")), prepend=":")
    monkeypatch.setenv("STANDIN_MODEL", str(llama.model))
    engine = tmp_path / "engine"
    engine.mkdir()
    config = {"pretrained_config": {"mapping": {"tp_size": 2, "pp_size": 1}}, "build_config": {"max_seq_len": 64}}
    (engine / "config.json").write_text(json.dumps(config))
    for rank in range(2):
        (engine / f"rank{rank}.engine").touch()
    task = {"rows": str(llama.rows), "baseline": None, "output": "scores.npz"}
    job = {"engine": str(engine), "vocabulary": 96, "kv_memory_share": 0.9, "chunked_context": False, "tasks": [task]}
    place = Place(on_host(tmp_path), 120.0)
    figures = scripted.score(scripted.ENGINE, job, place, making, read=[engine], ranks=2)
    assert figures["tokens"] == [9]
    scripted.require_scores(making.folder / "scores.npz", making)
    with pytest.raises(ToolFailed, match="MPI size 1 is not the engine's"):
        scripted.score(scripted.ENGINE, job, place, making, read=[engine], ranks=1)
