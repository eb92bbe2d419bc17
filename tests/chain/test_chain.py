"""The chain asks for the local engine where one is needed, and before the hours that come ahead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planning import target_path
from tiny_chain import hollow_model, write_config, write_prompts
from trtpipe.chain.chain import Chain
from trtpipe.chain.foresight import foresee
from trtpipe.config.load import Workspace, workspace
from trtpipe.core.artifacts import FOLDERS
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A workspace whose target is of TensorRT-LLM."""
    write_config(tmp_path, model=hollow_model(tmp_path / "model"), prompts=write_prompts(tmp_path / "prompts.jsonl"))
    return workspace(tmp_path / "trtpipe.yaml", (f"target={target_path('a100x8')}",))


@pytest.mark.parametrize("artifact", ["engine", "release", "baseline", "release_scores", "verdict"])
def test_a_tensorrt_llm_target_is_refused_before_anything_is_made(space: Workspace, artifact: str) -> None:
    with pytest.raises(EnvironmentUnfit, match="works on the local engine only") as caught:
        getattr(Chain(space, Runner(Store(space.root), Silent())), artifact)
    assert caught.value.where == f"{target_path('a100x8')} (kind)"
    assert not [folder for folder in FOLDERS.values() if (space.root / folder).exists()]


def test_what_comes_before_the_engine_takes_any_target(space: Workspace) -> None:
    assert Chain(space, Runner(Store(space.root), Silent())).prompt_set.record.kind == "prompt-set"
    assert [stage.decision for stage in foresee(space, "checkpoint")] == ["reuse", "build"]
