"""The stage around the worker: what goes into the engine folder, and what stops the build."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from trtpipe.core import environment
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.engines import vllm_build
from trtpipe.engines.vllm_arguments import VllmPlan, VllmSettings, plan
from trtpipe.errors import ConfigError, Problems, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact

WORDS = ["<end>", "What", "is", "the", "capital", "of", "France", "?", "Paris", "It"]
SCALES = {f"model.layers.0.self_attn.{letter}_scale": 0.25 for letter in "kv"}


def a_plan() -> VllmPlan:
    settings = VllmSettings(
        kv_dtype=("fp8_e4m3",),
        kv_block_tokens=32,
        kv_pool_mib=256,
        max_model_len=2048,
        max_num_seqs=16,
        prefix_caching=True,
        threads=2,
    )
    return plan(settings, cpu_has_fp8_kv=True, cpu_has_avx512=True, cpu_cores=2)


def a_result(**changes: Any) -> dict[str, Any]:
    """What the worker reports of a good engine."""
    resolved = {
        "kv_dtype": "fp8_e4m3",
        "kv_block_tokens": 32,
        "kv_tokens": 23296,
        "max_model_len": 2048,
        "max_num_seqs": 16,
        "prefix_caching": True,
        "weights_dtype": "bfloat16",
        "int4_layers": 4,
        "w4a8_layers": 0,
    }
    return {
        "resolved": {**resolved, **changes.pop("resolved", {})},
        "kv_scales_loaded": SCALES,
        "kv_scales_stored": SCALES,
        "answer_ids": [9, 2, 8],
        "load_seconds": 3.0,
        "answer_seconds": 1.0,
        "peak_rss_mib": 1200,
        **changes,
    }


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}))
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": "<end>", "chat_template": "{{ messages[0]['content'] }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    config = {"quantization_config": {"quant_method": "compressed-tensors"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "record.json").write_text("{}")
    return folder


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The jobs that were given to the worker; no worker runs."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(environment, "version_of", lambda name, extra: "0.0")

    def answer(module: str, job: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
        seen.append({"module": module, **job, **rest})
        return a_result()

    monkeypatch.setattr(vllm_build, "run_worker", answer)
    return seen


def build(root: Path, checkpoint: Path) -> Artifact:
    return Runner(Store(root), Silent()).obtain(vllm_build.stage(checkpoint, "0" * 64, a_plan(), 60.0))


def test_the_engine_folder_is_the_checkpoint_and_how_to_start_it(
    tmp_path: Path, checkpoint: Path, jobs: list[dict[str, Any]]
) -> None:
    engine = build(tmp_path, checkpoint)
    written = json.loads((engine.path / "engine.json").read_text())
    assert written["kind"] == "vllm"
    assert written["arguments"] == a_plan().arguments
    assert written["environment"] == a_plan().environment
    assert written["resolved"]["kv_tokens"] == 23296
    assert written["golden"] == {
        "prompt_ids": [1, 2, 3, 4, 5, 6, 7],
        "answer_ids": [9, 2, 8],
        "text": "It is Paris",
    }
    weights = engine.path / "model.safetensors"
    assert weights.stat().st_ino == (checkpoint / "model.safetensors").stat().st_ino
    assert (engine.path / "record.json").read_text() != "{}"
    assert (checkpoint / "record.json").read_text() == "{}"
    assert engine.record.figures["k_scale_max"] == 0.25
    assert "KV scales: the checkpoint's own, found in all 1 layers" in engine.record.notes
    assert "KV cache: fp8_e4m3: the target's first choice" in engine.record.notes


def test_the_worker_starts_as_the_engine_will(tmp_path: Path, checkpoint: Path, jobs: list[dict[str, Any]]) -> None:
    build(tmp_path, checkpoint)
    assert len(jobs) == 1
    assert jobs[0]["module"] == "trtpipe.engines.vllm_worker"
    assert jobs[0]["arguments"] == a_plan().arguments
    assert jobs[0]["environment"] == a_plan().environment
    assert jobs[0]["time_limit_s"] == 60.0


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"resolved": {"kv_dtype": "bfloat16"}}, "kv_dtype is bfloat16, not fp8_e4m3"),
        ({"resolved": {"w4a8_layers": 4}}, "4 layers quantize activations"),
        ({"kv_scales_stored": {}}, "KV scales not applied: 1 layers"),
        ({"answer_ids": [0]}, "the answer is empty"),
        ({"answer_ids": [8] * 32}, "over and over"),
    ],
)
def test_an_unsound_engine_is_not_built(
    tmp_path: Path,
    checkpoint: Path,
    jobs: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    fault: str,
) -> None:
    monkeypatch.setattr(vllm_build, "run_worker", lambda *_, **__: a_result(**changes))
    with pytest.raises(ToolFailed) as caught:
        build(tmp_path, checkpoint)
    assert fault in caught.value.what
    assert caught.value.where
    assert caught.value.fix
    assert Store(tmp_path).all("engine") == []


def test_all_faults_are_reported_at_once(
    tmp_path: Path, checkpoint: Path, jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = a_result(kv_scales_stored={}, answer_ids=[0])
    monkeypatch.setattr(vllm_build, "run_worker", lambda *_, **__: result)
    with pytest.raises(Problems) as caught:
        build(tmp_path, checkpoint)
    assert len(caught.value.problems) == 2


def test_an_unquantized_model_is_refused_before_anything_starts(
    tmp_path: Path, checkpoint: Path, jobs: list[dict[str, Any]]
) -> None:
    (checkpoint / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="quantization is none, not compressed-tensors"):
        build(tmp_path, checkpoint)
    assert jobs == []
