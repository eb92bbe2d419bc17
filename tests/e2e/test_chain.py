"""The whole chain on the embedded default: what it claims, what it reuses, what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from trtpipe.core import artifacts, environment
from trtpipe.core.artifacts import FOLDERS
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from workspaces import REPOSITORY, trtpipe, write_config

pytestmark = pytest.mark.e2e
DAMAGED_LAYER = 15


def test_an_unchanged_second_run_reuses_everything_within_two_seconds(workspace: Path) -> None:
    started = time.monotonic()
    result = trtpipe("run", "--json", folder=workspace)
    seconds = time.monotonic() - started
    assert result.code == 0
    assert all(stage["reused"] for stage in result.document["stages"])
    assert seconds < 4, "2 s on a quiet machine; twice that on a busy one"


def test_a_changed_limit_runs_the_check_only(workspace: Path) -> None:
    result = trtpipe("run", "--json", "--set", "policy.overall.top1_agreement_min=0.5", folder=workspace)
    built = [stage["stage"] for stage in result.document["stages"] if not stage["reused"]]
    assert built in (["check-drift"], []), "none when an earlier session has checked this limit"
    decision = result.document["stages"][-1]["decision"]
    assert decision == "reused" or "top1_agreement_min" in decision


@pytest.mark.fp8_cpu
@pytest.mark.skipif(not environment.cpu_has_fp8_kv(), reason="no AVX-512 or AMX: FP8 KV was not run")
def test_the_engine_has_an_fp8_kv_cache_in_blocks(workspace: Path) -> None:
    release = require_current(Store(workspace))
    engine = json.loads((release.path / "engine" / "engine.json").read_text("utf-8"))
    assert engine["arguments"]["kv_cache_dtype"] == "fp8_e4m3"
    assert engine["resolved"]["kv_dtype"].startswith("fp8")
    assert engine["arguments"]["block_size"] == 32
    assert engine["resolved"]["kv_tokens"] >= 4 * 2048


def test_the_verdict_names_what_was_compared(workspace: Path) -> None:
    status = trtpipe("status", "--json", folder=workspace).document
    assert [release["verdict"] for release in status["releases"] if release["release"] == status["current"]] == ["pass"]
    assert status["history"][-1]["release"] == status["current"]


def test_one_layers_scales_times_1_2_are_rejected_and_not_promoted(workspace: Path, tmp_path: Path) -> None:
    write_config(tmp_path)
    for kind in ("model", "prompt-set", "checkpoint", "scores"):
        shutil.copytree(workspace / FOLDERS[kind], tmp_path / FOLDERS[kind], copy_function=os.link)
    _damage(Store(tmp_path))
    result = trtpipe("check-drift", "--json", folder=tmp_path)
    assert result.code == 6, result.stderr
    verdict = result.document["verdict"]
    assert verdict["verdict"] == "fail"
    promotion = trtpipe("promote", folder=tmp_path)
    assert promotion.code == 6
    assert "rejected" in promotion.stderr
    assert not (tmp_path / "triton_repo" / "current").exists()


def _damage(store: Store) -> None:
    """Turn every checkpoint into one of a quantizer that went wrong: whole, recorded, with one layer's scales off."""
    for checkpoint in store.all("checkpoint"):
        shard = next(checkpoint.path.glob(f"model-{DAMAGED_LAYER + 1:05d}-of-*.safetensors"))
        tensors = load_file(shard)
        for name in tensors:
            if name.endswith("weight_scale"):
                tensors[name] = tensors[name] * 1.2
        shard.unlink()
        save_file(tensors, shard, metadata={"format": "pt"})
        outputs = artifacts.outputs_of(checkpoint.path)
        changes = {"outputs": outputs, "digest": artifacts.outputs_digest(outputs)}
        (checkpoint.path / artifacts.RECORD).unlink()
        artifacts.write_record(checkpoint.path, checkpoint.record.model_copy(update=changes))


def test_serve_and_ask(workspace: Path, server: str) -> None:
    port = server.rsplit(":", 1)[1]
    result = trtpipe(
        "ask",
        "What is the capital of France?",
        "--max-tokens",
        "24",
        "--set",
        f"serving.http_port={port}",
        folder=workspace,
    )
    assert result.code == 0, result.stderr
    assert "France" in result.stdout  # what it says of it depends on the CPU: a 135M model in 4 bits


def test_tensorrt_llm_is_refused_with_exit_4(tmp_path: Path) -> None:
    write_config(tmp_path)
    result = trtpipe("run", "--set", f"target={REPOSITORY}/engines/a100x8.yaml", folder=tmp_path)
    assert result.code == 4
    assert "tensorrt-llm" in result.stderr
    assert not list(tmp_path.glob("*/*/*/record.json"))
