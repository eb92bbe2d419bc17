"""The drift check's artifact: one verdict in three forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calibration.tiny import model_folder
from drift.synthetic import answers, pair, policy
from trtpipe.chain import check
from trtpipe.chain.scoring import SCORES, SERVED_SCORES
from trtpipe.config.policy import DriftPolicy
from trtpipe.core.artifacts import Artifact, KeyParts, Record
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Making

LENGTHS = [5, 8, 3, 6, 4, 7, 5, 8, 3, 6, 4, 7]
ENGINE = {"kind": "vllm", "engine_version": "1.2", "resolved": {"kv_dtype": "fp8_e4m3"},
          "arguments": {"max_model_len": 128}}  # fmt: skip


def artifact(path: Path, kind: Any) -> Artifact:
    path.mkdir(exist_ok=True)
    parts = KeyParts(stage="made", revision=1, inputs={}, parameters={}, versions={})
    record = Record(
        kind=kind,
        key=parts.key,
        parts=parts,
        digest=kind[0] * 64,
        outputs={},
        figures={},
        notes=[],
        seconds=1.0,
        created="2024-05-06T07:08:09.123+00:00",
        environment={},
    )
    return Artifact(path, record)


def test_the_verdict_is_written_as_json_text_and_page(tmp_path: Path) -> None:
    release, baseline = artifact(tmp_path / "release", "release"), artifact(tmp_path / "baseline", "scores")
    scored, prompts = artifact(tmp_path / "scored", "scores"), artifact(tmp_path / "prompts", "prompt-set")
    model_folder(release.path / "engine")
    (release.path / "engine" / "engine.json").write_text(json.dumps(ENGINE))
    before, after = pair(1, LENGTHS, 0.0)
    before.save(baseline.path / SCORES)
    after.save(scored.path / SCORES)
    answers([[5, 6, 2]] * 3, [[5, 6, 2]] * 3).save(scored.path / SERVED_SCORES)
    rows = [{"id": row, "segment": "<b>code"} for row in before.row_ids]
    (prompts.path / "heldout.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    making = Making(folder=tmp_path / "made", log=tmp_path / "log", reporter=Silent())
    making.folder.mkdir()
    demands = DriftPolicy.model_validate(policy().model_dump())

    check.stage(release, baseline, scored, prompts, demands).make(making)

    assert {path.name for path in making.folder.iterdir()} == {"verdict.json", "verdict.txt", "verdict.html"}
    found = json.loads((making.folder / "verdict.json").read_text())
    page = (making.folder / "verdict.html").read_text()
    assert making.figures["verdict"] == found["verdict"] == "pass"
    assert "&lt;b&gt;code" in page
    assert found["digests"]["release"] in page
    assert str(tmp_path) not in page
