"""``trtpipe accept`` from end to end, through STAND-INS for trtllm-build and Triton, and everything that it refuses."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from accepting import fault_of, ready, written
from standins import nvidia_smi, tritonserver
from trtllm_builds import Site
from trtpipe.chain.acceptance.steps import NAMES
from trtpipe.cli import trtpipe
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import Store
from trtpipe.errors import EnvironmentUnfit, ToolFailed

if TYPE_CHECKING:
    from click.testing import Result

PLANNED_BLOCKS = "STANDIN_KV_BLOCKS"
# The model of these sites is a quantized one: there is nothing to measure drift against.
WITHOUT_DRIFT = dict.fromkeys(("prompts", "answers", "drift"), "not measured")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A workspace whose engine is built, so that most tests reuse it."""
    site = Site(tmp_path_factory.mktemp("accept") / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(site.install()), prepend=os.pathsep)
        site.build()
    return site


@pytest.fixture
def site(made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return ready(made, tmp_path, monkeypatch)[0]


def accept(site: Site, *more: str) -> Result:
    words = ["accept", "-c", str(site.config_file), "--checkpoint", str(site.checkpoint), "-q", *more]
    return CliRunner().invoke(trtpipe, words, prog_name="trtpipe")


def test_every_step_leaves_its_figures_and_what_stood_in_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, _ = site.plan()
    memory = planned.plan.memory
    assert memory is not None
    pool = memory.pools["fp8_e4m3"]
    monkeypatch.setenv(PLANNED_BLOCKS, str(pool.blocks * 9 // 10))
    result = accept(site, "--load-requests", "12", "--load-clients", "4")
    assert result.exception is None, result.exception
    document = written()
    assert document["ok"] is True
    assert document["engine"]["builder_reported"] == "STAND-IN, which compiles nothing"
    assert document["server"] == {"name": tritonserver.NAME, "version": "stand-in"}
    assert document["plan"]["legal"] is True
    assert [gpu["sm"] for gpu in document["machine"]["gpus"]] == [80] * 8
    steps = document["steps"]
    assert list(steps) == list(NAMES)
    assert {name: step["state"] for name, step in steps.items()} == dict.fromkeys(NAMES, "done") | WITHOUT_DRIFT
    assert (steps["build"]["reused"], steps["build"]["figures"]["world_size"]) == (True, 8)
    assert (steps["inspect"]["findings"], steps["inspect"]["every_byte_compared"]) == ([], True)
    assert steps["kv-blocks"]["blocks"] == pool.blocks * 9 // 10
    assert steps["kv-blocks"]["blocks_of_planned"] == pytest.approx(0.9, abs=1e-3)
    assert steps["kv-blocks"]["runtime_reserve_mib_measured"] == pytest.approx(
        memory.reserve.runtime_bytes / 2**20 + min(memory.free_bytes) / 2**20 / 10, rel=1e-3
    )
    tokenizer = ChatTokenizer.load(site.model)
    for answer in steps["golden-ids"]["answers"]:
        assert len(answer["answer_ids"]) == 32
        assert tokenizer.decode(answer["answer_ids"]) == answer["text"]
    load = steps["load"]
    assert (load["requests"], load["failed"], load["ttft_ms"]["samples"], load["tpot_ms"]["samples"]) == (12, 0, 12, 12)
    assert load["answer_tokens"] == 12 * load["answer_tokens_asked"] == 12 * 64
    assert load["prompt_tokens_each"] <= 128 - 64
    assert "answers of 64 tokens: the engine's sequences end at 128" in load["note"]
    assert load["answer_tokens_per_second"] == pytest.approx(load["answer_tokens"] / load["seconds"], rel=1e-2)
    for said in (tritonserver.NAME, "12 samples", "the builder reported: STAND-IN", "accept-target.json"):
        assert said in " ".join(result.stdout.split())
    assert "is quantized already" in steps["drift"]["why"]
    assert "without a verdict `promote` refuses the release" in " ".join(result.stdout.split())


def test_on_a_bare_machine_all_that_is_missing_is_said_in_the_first_second(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (site.checkpoint / "rank3.safetensors").unlink()
    accept(site, "--dry-run")  # what is imported once
    started = time.process_time()  # what a busy machine takes away is not the command's
    fault = fault_of(accept(site))
    assert time.process_time() - started < 1.0
    assert fault.exit_code == EnvironmentUnfit.exit_code
    assert [one.what for one in fault.each()] == [
        "there is no trtllm-build here, and neither docker nor podman to run it in",
        "no NVIDIA driver: there is no nvidia-smi",
        "there is no tritonserver here",
        "there is no mpirun here, which starts the ranks",
        "the checkpoint lacks rank 3",
    ]
    assert all(one.where and one.fix for one in fault.each())
    assert not Path("accept-target.json").exists()


@pytest.mark.parametrize(("shown", "count"), [("0,1,2,3", 4), ("", 0)])
def test_gpus_that_cuda_hides_are_missing_before_the_build(
    site: Site, monkeypatch: pytest.MonkeyPatch, shown: str, count: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    fault = fault_of(accept(site, "--dry-run"))
    (one,) = fault.each()
    assert isinstance(one, EnvironmentUnfit)
    assert one.what == f"the target has 8 ranks, one a GPU, and CUDA_VISIBLE_DEVICES={shown} shows {count} GPUs"
    assert one.fix == "unset it, or name 8 GPUs"


def test_gpus_of_another_type_do_not_hide_that_they_are_too_few(site: Site) -> None:
    programs = site.folder / "tensorrt-llm/bin"
    nvidia_smi.write(programs, name="NVIDIA A10", capability="8.6", memory_mib=23028, count=4)
    kind, count = fault_of(accept(site, "--dry-run")).each()
    assert "this machine has NVIDIA A10 (SM 86, 23028 MiB)" in kind.what
    assert count.what == "the target has 8 ranks, one a GPU, and there are 4 GPUs"


def test_another_version_is_refused_in_the_first_second_too(site: Site) -> None:
    shutil.rmtree(site.folder / "tensorrt-llm")
    site.install(version="1.3.0rc21")
    fault = fault_of(accept(site))
    assert fault.exit_code == EnvironmentUnfit.exit_code
    assert fault.what.startswith("TensorRT-LLM 1.3.0rc21 builds no engines: 1.3 removes the engine path")
    assert not Path("accept-target.json").exists()


def test_a_file_that_cannot_be_written_is_found_out_before_the_build(site: Site) -> None:
    result = accept(site, "--set", "target.max_batch_size=2", "--out", f"{site.config_file}/accept.json")
    assert isinstance(result.exception, OSError)
    assert len(Store(site.folder).all("engine")) == 1, "none but the one that was there"


def test_a_dry_run_says_that_nothing_is_missing_and_does_nothing(site: Site) -> None:
    result = accept(site, "--dry-run", "--json")
    assert json.loads(result.stdout)["steps"] == [name for name in NAMES if name not in WITHOUT_DRIFT]
    assert not Path("accept-target.json").exists()


def test_a_build_that_fails_is_in_the_document_and_nothing_after_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_KILL_RANK", "2")
    result = accept(site, "--set", "target.max_batch_size=4", "--json")
    assert result.exit_code == ToolFailed.exit_code
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert document["steps"]["build"]["state"] == "failed"
    assert "killed by SIGKILL" in document["steps"]["build"]["errors"][0]["what"]
    for name in ("inspect", "package", "launch", "kv-blocks", "golden-ids", "load"):
        assert document["steps"][name] == {"state": "not run", "seconds": None, "why": "build ended before"}
    assert written()["steps"] == document["steps"]


def test_a_server_that_does_not_load_is_told_with_its_reason(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_BACKEND_FAULT", "CUDA out of memory")
    fault = fault_of(accept(site))
    assert "CUDA out of memory" in fault.what
    states = {name: step["state"] for name, step in written()["steps"].items()}
    assert (states["package"], states["launch"], states["load"]) == ("done", "failed", "not run")


def test_a_measurement_that_fails_leaves_the_others_their_figures(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLANNED_BLOCKS, "3")
    monkeypatch.setenv("STANDIN_UNSTEADY", "1")
    monkeypatch.setenv("STANDIN_LEAD", "7")
    monkeypatch.setenv("STANDIN_REFUSES", "9")
    result = accept(site, "--load-requests", "3", "--load-answer-tokens", "9")
    whats = "\n".join(one.what for one in fault_of(result).each())
    assert "the KV cache has 3 blocks, 0.0% of 6," in whats
    assert "the KV cache holds 96 tokens, less than one sequence of 128: longer requests fail" in whats
    assert "the same question got other ids the second time" in whats
    assert "is not that of the engine's ids" in whats
    assert "preprocessing makes other ids of the prompt than this model's tokenizer: position 0 is 7 " in whats
    assert "3 of 3 requests failed: the server answered 500: the stand-in refuses this length" in whats
    steps = written()["steps"]
    assert {steps[name]["state"] for name in ("kv-blocks", "golden-ids", "load")} == {"failed"}
    assert (steps["kv-blocks"]["blocks"], steps["load"]["failed"], steps["load"]["ttft_ms"]) == (3, 3, {"samples": 0})
    assert len(steps["golden-ids"]["answers"]) == 3
    assert "not accepted" in result.stdout
