"""A TensorRT-LLM release served through a STAND-IN for Triton: asked, known to the front, ended with all its ranks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from standins import tritonserver
from trtllm_builds import Site
from trtpipe.chain import fronted, released, trtllm_release
from trtpipe.chain.served import free_addresses
from trtpipe.client import Client
from trtpipe.config.load import workspace
from trtpipe.core.artifacts import Artifact
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.errors import ToolFailed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path / "site")
    programs = f"{made.install()}{os.pathsep}{tritonserver.install(tmp_path / 'triton')}"
    monkeypatch.setenv("PATH", programs, prepend=os.pathsep)
    made.write_config()
    return made


@pytest.fixture
def release(site: Site) -> Artifact:
    runner = Runner(Store(site.folder), Silent())
    return trtllm_release.package(runner, site.build().path, site.model, "2026-01-01", Ports())


def processes(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [words] if f"--model-repository={folder}" in words else []
    return found


def test_it_answers_from_all_its_ranks_and_ends_with_them(site: Site, release: Artifact) -> None:
    space, addresses, state = workspace(site.config_file), free_addresses(), site.folder / ".trtpipe"
    log = state / "log.txt"
    with released.running(space, release, addresses, state=state, log=log, note=lambda text: None):
        assert len(processes(state / "triton")) == 10, "the supervisor, mpirun, and a server a rank"
        with Client(addresses.http_url) as client:
            assert client.generate("Hello", max_tokens=12) == tritonserver.SENTENCE[:12]
    assert processes(state / "triton") == []
    assert not (state / "triton" / str(addresses.http_port)).exists()


def test_a_rank_that_ends_while_loading_is_told(site: Site, release: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_BACKEND_FAULT", "no kernel image is available")
    space, state = workspace(site.config_file), site.folder / ".trtpipe"
    with (
        pytest.raises(ToolFailed, match="tensorrt_llm: no kernel image is available"),
        released.running(space, release, free_addresses(), state=state, log=state / "log", note=lambda text: None),
    ):
        pass
    assert processes(state / "triton") == []


def test_a_start_has_the_time_that_the_release_was_packaged_with(site: Site) -> None:
    engine, space, state = site.build(), workspace(site.config_file), site.folder / ".trtpipe"
    current = site.plan()[0].plan.target.model_copy(update={"load_time_limit_s": 0.01})
    runner = Runner(Store(site.folder), Silent())
    release = trtllm_release.package(runner, engine.path, site.model, "2026-01-01", Ports(), current)
    with (
        pytest.raises(ToolFailed, match="not ready"),
        released.running(space, release, free_addresses(), state=state, log=state / "log", note=lambda text: None),
    ):
        pass
    assert processes(state / "triton") == []


def test_the_front_knows_its_tokenizer_and_its_longest_sequence(site: Site, release: Artifact) -> None:
    served = fronted.served(workspace(site.config_file), release, "http://127.0.0.1:8000", None)
    assert (served.limits.context_tokens, served.limits.answer_tokens) == (128, 127)
    assert served.tokenizer.encode("a")
