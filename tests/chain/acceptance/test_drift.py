"""Drift in ``trtpipe accept``: a real baseline, and STAND-INS for TensorRT-LLM's executor and for Triton."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from exports import canonical

import talker
from accepting import fault_of, ready, written
from calibration.tiny import END, write_log
from trtllm_builds import TARGET, Site
from trtpipe.chain.acceptance.steps import NAMES
from trtpipe.cli import trtpipe
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError, GateRejected

if TYPE_CHECKING:
    from click.testing import Result

PROMPTS = {"files": ["log.jsonl"], "allow_short": True, "general_share": 0.0, "calibration_prompts": 20,
           "heldout_prompts_per_segment": 12}  # fmt: skip
POLICY = ("heldout_prompts_min=10", "heldout_prompts_per_segment_min=5", "served_prompts=4", "bootstrap_resamples=200")
SHAPE = {
    name: canonical.CONFIG[name]
    for name in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                 "max_position_embeddings")
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A workspace with the unquantized model, whose engine is built, so that the tests reuse it."""
    site = Site(tmp_path_factory.mktemp("drift") / "site", target=TARGET | {"tensor_parallel": 2})
    talker.save(site.folder / "original", site.model, **SHAPE, vocab_size=END + 1, eos_token_id=END)
    write_log(site.folder, [
        {"prompt": f"{number} parcels {number * 37 % 101} late", "response": f"Sorry, {number * 53 % 97}"}
        for number in range(60)
    ])  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(site.install()), prepend=os.pathsep)
        site.build()
    return site


@pytest.fixture
def site(made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    copy, free = ready(made, tmp_path, monkeypatch, prompts=PROMPTS)
    monkeypatch.setenv("STANDIN_MODEL", str(copy.folder / "original"))
    monkeypatch.setenv("STANDIN_SENTENCE", talker.SENTENCE)
    monkeypatch.setenv("STANDIN_KV_BLOCKS", "10000000")
    monkeypatch.setenv("STANDIN_HOLDER", str(free.http_port))
    return copy


def accept(site: Site, *more: str, baseline: str = "original") -> Result:
    words = ["accept", "-c", str(site.config_file), "--checkpoint", str(site.checkpoint), "-q", "--load-requests", "2",
             "--load-answer-tokens", "4", "--baseline", str(site.folder / baseline)]  # fmt: skip
    words += [word for key in POLICY for word in ("--set", f"policy.{key}")]
    return CliRunner().invoke(trtpipe, [*words, *more], prog_name="trtpipe")


def test_an_engine_like_the_model_passes_and_may_be_promoted_and_a_damaged_one_is_rejected(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = accept(site)
    assert result.exception is None, result.exception
    document = written()
    steps = document["steps"]
    assert {name: step["state"] for name, step in steps.items()} == dict.fromkeys(NAMES, "done")
    drift = steps["drift"]
    assert drift["verdict"] == "pass"
    assert drift["overall"]["kl_top20_nats"]["value"] == pytest.approx(0.0, abs=1e-5)
    assert drift["overall"]["top1_agreement"]["value"] == 1.0
    assert drift["overall"]["perplexity_ratio"]["value"] == pytest.approx(1.0, abs=1e-4)
    counts = {(one["prompts"], one["tokens"]) for one in drift["overall"].values()}
    assert counts == {(steps["prompts"]["heldout_prompts"], steps["prompts"]["scored_tokens"])}
    assert (drift["served"]["agreement"]["value"], drift["served"]["agreement"]["prompts"]) == (1.0, 4)
    assert drift["baseline"]["runs_with"].startswith("Hugging Face transformers ")
    assert (drift["baseline"]["dtype"], drift["baseline"]["places"]) == ("float32", {"cpu": 1})
    verdict = json.loads((Path(drift["path"]) / "verdict.json").read_text())
    assert verdict["engine"] == {
        "name": "tensorrt-llm", "version": "1.2.1", "kv_dtype": "fp8_e4m3", "cpu_flags": [],
        "kv_scale_source": "the checkpoint's, per layer, one for K and V", "gpus": ["NVIDIA A100-SXM4-80GB"] * 2,
    }  # fmt: skip
    assert "2 x NVIDIA A100-SXM4-80GB" in " ".join((Path(drift["path"]) / "verdict.txt").read_text().split())
    assert "Sorry" not in json.dumps(document)
    screen = " ".join(result.stdout.split())
    assert "drift done" in screen
    assert "pass, against Hugging Face transformers" in screen
    assert "served top1_agreement 1 [1, 1], min 0.9: pass (4 prompts, 192 tokens)" in screen

    words = ["promote", "-c", str(site.config_file), "-q"]
    promoted = CliRunner().invoke(trtpipe, words, prog_name="trtpipe")
    assert promoted.exception is None, promoted.exception

    again = accept(site)
    assert again.exception is None, again.exception
    assert written()["steps"]["drift"]["scores_reused"] == {"baseline": True, "engine": True}

    for scores in Store(site.folder).all("scores")[1:]:
        shutil.rmtree(scores.path)
    monkeypatch.setenv("STANDIN_DAMAGE", "3")
    fault = fault_of(accept(site))
    assert isinstance(fault, GateRejected)
    assert fault.what.startswith("the drift check says fail: overall: kl_top20_nats")
    document = written()
    assert document["ok"] is False
    drift = document["steps"]["drift"]
    assert (drift["state"], drift["verdict"], drift["scores_reused"]) == (
        "failed", "fail", {"baseline": True, "engine": False},
    )  # fmt: skip
    assert drift["overall"]["kl_top20_nats"]["low"] > 0.05
    assert drift["overall"]["top1_agreement"]["high"] < 0.94


def test_the_steps_are_told_before_anything_runs(site: Site) -> None:
    result = accept(site, "--dry-run")
    assert result.stdout.splitlines() == [
        f"this machine has all for: {', '.join(NAMES)}", f"drift is measured against: {site.folder / 'original'}",
    ]  # fmt: skip
    quantized = accept(site, "--dry-run", baseline="model")
    assert quantized.stdout.splitlines()[1] == (
        f"drift is not measured: {site.model} is quantized already: give the model that it was made of with --baseline"
    )
    for weights in (site.folder / "original").glob("*.safetensors"):
        weights.unlink()
    assert "has no weights (*.safetensors)" in accept(site, "--dry-run").stdout
    assert isinstance(fault_of(accept(site, "--dry-run", baseline="nowhere")), ConfigError)


def test_prompts_that_the_engine_does_not_take_are_found_before_the_build(site: Site) -> None:
    write_log(site.folder, [{"prompt": f"{number} " * 20, "response": "Sorry. " * 20} for number in range(60)])
    fault = fault_of(accept(site, "--set", "target.max_batch_size=3"))
    assert isinstance(fault, ConfigError)
    assert "but the engine takes 128" in fault.what
    assert written()["steps"]["build"]["state"] == "not run"


def test_a_baseline_of_another_shape_is_found_before_the_build(site: Site) -> None:
    config = site.folder / "original/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 2}))
    fault = fault_of(accept(site))
    assert fault.what == "the unquantized model's num_hidden_layers is 2, that of --model 3"
    assert written()["steps"]["build"]["state"] == "not run"
