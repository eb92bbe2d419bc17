"""A build of a TensorRT-LLM engine that fails, is stopped, or makes something else: nothing is published."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trtllm_builds import Site, whats
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.built import inspection
from trtpipe.errors import ToolFailed, TrtpipeError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site").on_path(monkeypatch)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("STANDIN_KILL_RANK", "killed by SIGKILL, rank 3, 4, 5, 6, 7 of 8 not written"),
        ("STANDIN_SKIP_RANK", "trtllm-build failed: exit status 0, rank 3 of 8 not written"),
        ("STANDIN_SHORT_RANK", "rank 3 is short: "),
    ],
)
def test_o_34_a_rank_that_failed_is_named_and_nothing_is_published(
    site: Site, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(TrtpipeError) as caught:
        site.build()
    assert said in whats(caught)
    (problem,) = caught.value.each()
    assert problem.log or problem.where
    if variable == "STANDIN_KILL_RANK":
        assert "--set target.build_workers=1" in str(problem.fix)
        assert "| [01/01/2026-00:00:00]" in problem.what, "the last lines of the log"
    assert Store(site.folder).all("engine") == []
    assert not (site.folder / ".trtpipe/timing-caches").exists()
    monkeypatch.delenv(variable)
    assert inspection.inspect(site.build().path).findings == ()
    assert site.leftovers() == []


def test_a_build_out_of_time_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_SLEEP_S", "30")
    site.write(build_time_limit_s=1)
    with pytest.raises(ToolFailed, match="did not finish within 1 s"):
        site.build()
    assert Store(site.folder).all("engine") == []


KILLED = """
import sys
sys.path[:0] = {paths!r}
from standins import trtllm_build as standin
from trtllm_builds import TARGET, Site
from pathlib import Path
import trtllm_builds
site = object.__new__(Site); site.folder = Path({folder!r}); site.target = trtllm_builds.TARGET
site.build()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_build_leaves_no_engine_and_no_process(
    site: Site, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv("STANDIN_SLEEP_S", "600")
    script = KILLED.format(paths=sys.path, folder=str(site.folder))
    log, deadline = None, time.monotonic() + 180
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as child:
        while not (log and log.stat().st_size) and time.monotonic() < deadline and child.poll() is None:
            log = next(iter(site.folder.glob(".trtpipe/runs/*/log.txt")), None)
            time.sleep(0.1)
        child.send_signal(how)
    assert log, "the build has begun"
    assert log.stat().st_size
    deadline = time.monotonic() + 60
    while (alive := builders(site)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive == []
    assert Store(site.folder).all("engine") == []
    monkeypatch.setenv("STANDIN_SLEEP_S", "0")
    assert inspection.inspect(site.build().path).findings == ()
    assert site.leftovers() == [], "the next build cleared what the killed one had begun"


def builders(site: Site) -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(site.folder).encode() in b" ".join(words) and b"--checkpoint_dir" in words:
            lines.append(shlex.join(word.decode() for word in words))
    return lines


def test_a_flag_that_became_something_else_blocks_with_its_cost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_REWRITE", "multiple_profiles")
    with pytest.raises(ToolFailed) as caught:
        site.build()
    assert "multiple_profiles is disable in the engine, and enable was asked for" in whats(caught)
    assert "cost: kernels are chosen for one size of step" in whats(caught)
    assert Store(site.folder).all("engine") == []
    site.write(accepted_changes=["multiple_profiles"])
    made = site.build()
    assert any("multiple_profiles is disable" in note and "(accepted)" in note for note in made.record.notes)
    assert [finding.kind for finding in inspection.inspect(made.path).findings] == ["changed"]
