"""The script that scores an engine, on a STAND-IN for TensorRT-LLM's executor whose logits are a real model's."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from standins import trtllm_executor
from trtpipe.core import scores
from trtpipe.engines.scoring.scripted import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engines.scoring.conftest import Scored


@dataclass
class Script:
    """``module``: the script, imported as it imports itself; ``job``: for the tiny Llama, ``out``: its outputs."""

    module: Any
    job: dict[str, Any]
    out: Path

    def run(self) -> scores.Scores:
        self.module.main(self.job, self.out)
        return scores.load(self.out / "scores.npz")


@pytest.fixture
def script(llama: Scored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    bindings = tmp_path / "site/tensorrt_llm/bindings"
    bindings.mkdir(parents=True)
    for folder in (bindings, bindings.parent):
        (folder / "__init__.py").write_text("")
    shutil.copyfile(trtllm_executor.__file__, bindings / "executor.py")
    engine = tmp_path / "engine"
    engine.mkdir()
    config = {"pretrained_config": {"mapping": {"tp_size": 1, "pp_size": 1}}, "build_config": {"max_seq_len": 64}}
    (engine / "config.json").write_text(json.dumps(config))
    (engine / "rank0.engine").touch()
    monkeypatch.setenv("STANDIN_MODEL", str(llama.model))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    before = set(sys.modules)
    module = importlib.import_module("tensorrt_llm_script")
    task = {"rows": str(llama.rows), "baseline": None, "output": "scores.npz"}
    job = {"engine": str(engine), "vocabulary": 96, "kv_memory_share": 0.9, "chunked_context": False, "tasks": [task]}
    yield Script(module, job, tmp_path)
    for name in {"tensorrt_llm_script", "positions", "markers", *(set(sys.modules) - before)}:
        if name.partition(".")[0] in ("tensorrt_llm", "tensorrt_llm_script", "positions", "markers"):
            sys.modules.pop(name, None)


def test_forced_tokens_are_scored_as_one_pass_scores_them(script: Script, llama: Scored) -> None:
    found = script.run()
    assert found.row_offsets.tolist() == [0, 4, 6, 9]
    assert found.token_ids.tolist() == [4, 1, 5, 9, 7, 1, 37, 38, 39]
    np.testing.assert_allclose(found.observed, llama.observed, atol=1e-4)
    assert found.argmax.tolist() == llama.logs.argmax(axis=1).tolist()
    figures = json.loads((script.out / "figures.json").read_text())
    assert (figures["rows"], figures["tokens"]) == ([3], [9])


def test_a_candidate_is_read_at_the_baselines_tokens_and_each_task_has_its_file(script: Script, llama: Scored) -> None:
    first = script.run()
    wanted = first.top_ids[:, ::-1].copy()
    scores.Scores(**{**vars(first), "top_ids": wanted}).save(script.out / "baseline.npz")
    task = {"rows": str(llama.rows), "baseline": str(script.out / "baseline.npz"), "output": "candidate.npz"}
    script.job["tasks"] = [*script.job["tasks"], task]
    again = script.run()
    candidate = scores.load(script.out / "candidate.npz")
    np.testing.assert_array_equal(again.top_ids, first.top_ids)
    np.testing.assert_array_equal(candidate.top_ids, wanted)
    np.testing.assert_allclose(candidate.top, first.top[:, ::-1], atol=1e-5)


def refusal(script: Script, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        script.run()
    assert not (script.out / "scores.npz").exists()
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("trtpipe-refusal "))


def test_an_engine_that_does_not_take_the_tokens_is_refused(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STANDIN_FORGETS", "1")
    said = refusal(script, capsys)
    assert "the engine did not take a row's tokens: ValueError: row c was to be at position 39, after token 38" in said


def test_a_row_that_the_engine_refuses_is_named(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(script.job["engine"]) / "config.json"
    config.write_text(config.read_text().replace("64", "39"))
    assert refusal(script, capsys) == "trtpipe-refusal the engine refused row c: 37 + 3 tokens exceed max_seq_len"


def test_positions_that_were_left_out_are_told(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    rows = script.module.positions.rows_of(Path(script.job["tasks"][0]["rows"]))
    forcing = script.module.Forcing(rows, [None] * 3, 96)
    assert not forcing.whole(), "a rank that decides on no token"
    forcing([1], [torch.zeros(1, 1, 96)], [[[2]]], 0, [1])
    with pytest.raises(SystemExit):
        forcing.whole()
    assert "the engine left positions out in 3 rows, first a" in capsys.readouterr().out


def test_a_rank_that_does_not_lead_asks_for_nothing(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.module.trtllm, "RANK", 1)
    monkeypatch.setattr(script.module.trtllm, "SIZE", 2)
    engine = Path(script.job["engine"])
    (engine / "rank1.engine").touch()
    (engine / "config.json").write_text((engine / "config.json").read_text().replace('"tp_size": 1', '"tp_size": 2'))
    script.module.main(script.job, script.out)
    assert not list(script.out.glob("*.npz"))
    assert not (script.out / "figures.json").exists()
