"""The whole stage for real: download, convert, answer; and again, byte for byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.sample.stage import DIMENSIONS, stage

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact


@pytest.mark.e2e
def test_the_model_speaks_and_is_described(sample_model: Artifact) -> None:
    figures = sample_model.record.figures
    assert figures["parameters"] == 134_515_008
    assert figures["vocabulary_tokens"] == 49_152
    assert "Paris" in figures["answer"]
    config = json.loads((sample_model.path / "config.json").read_text())
    assert config == json.loads((DIMENSIONS / "config.json").read_text()), "what is planned before it is made"
    assert (config["rms_norm_eps"], config["rope_theta"], config["head_dim"]) == (1e-5, 100_000, 64)
    assert any("second quantization" in note for note in sample_model.record.notes)


@pytest.mark.e2e
def test_a_second_run_makes_the_same_bytes(sample_model: Artifact, cache: Path, tmp_path: Path) -> None:
    again = Runner(Store(tmp_path), Silent()).obtain(stage(cache))
    assert again.record.outputs == sample_model.record.outputs
    assert again.digest == sample_model.digest
