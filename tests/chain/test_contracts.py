"""Artifacts that the stages make of tiny inputs keep what their kind promises; all seven kinds: tests/e2e."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from contracts import broken
from tiny_chain import real_model, write_config, write_prompts
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.triton_repo import repository
from workspaces import trtpipe


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A workspace after calibration, and a release of an engine that nobody has started."""
    folder = tmp_path_factory.mktemp("workspace")
    write_config(folder, model=real_model(folder / "model"), prompts=write_prompts(folder / "prompts.jsonl"))
    done = trtpipe("calibrate", folder=folder)
    assert done.code == 0, done.stderr
    store = Store(folder)
    shutil.copytree(store.all("checkpoint")[0].path, folder / "engine")
    facts = dict.fromkeys(("kind", "engine_version", "arguments", "environment", "resolved", "golden"))
    (folder / "engine" / "engine.json").write_text(json.dumps(facts))
    packaging = repository.Packaging(execution_environment=sys.prefix, template_date="2026-01-01")
    Runner(store, Silent()).obtain(repository.stage(folder / "engine", "e" * 64, packaging))
    return store


@pytest.mark.parametrize("kind", ["prompt-set", "checkpoint", "release"])
def test_the_promises_are_kept(store: Store, kind: str) -> None:
    (artifact,) = store.all(kind)  # type: ignore[arg-type]
    assert broken(artifact) == []


def test_a_broken_promise_is_seen(store: Store, tmp_path: Path) -> None:
    (artifact,) = store.all("prompt-set")
    copy = shutil.copytree(artifact.path, tmp_path / artifact.id)
    rows = [json.loads(line) for line in (copy / "heldout.jsonl").read_text().splitlines()]
    rows[0]["score_from"] = 0
    runner = Runner(Store(tmp_path), Silent())
    (copy / "heldout.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    from core.stages import stage

    def make(making: object) -> None:
        for name in ("calibration.jsonl", "heldout.jsonl"):
            shutil.copy(copy / name, making.folder)  # type: ignore[attr-defined]

    made = runner.obtain(stage(make, name="select-prompts", kind="prompt-set"))
    assert f"heldout {rows[0]['id']}: positions" in broken(made)
    assert "no figure calibration_prompts" in broken(made)
