"""A config with its target and policy in a folder, and what is said of it, for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.config.load import Workspace, workspace
from trtpipe.errors import TrtpipeError

CONFIG = "model: sample\nprompts:\n  files: [a.jsonl]\ntarget: engine.yaml\npolicy: policy.yaml\n"
TARGET = "kind: vllm\nweights: w4a16\nkv_dtype: [bfloat16]\n"
POLICY = "why: test\nper_segment:\n  kl_top20_nats_max: 0.2\n"


def write(folder: Path, **texts: str) -> None:
    names = {"config": "trtpipe.yaml", "target": "engine.yaml", "policy": "policy.yaml"}
    for name, text in texts.items():
        (folder / names[name]).write_text(text)


def load(folder: Path, *overrides: str) -> Workspace:
    return workspace(folder / "trtpipe.yaml", overrides)


def problems(folder: Path, *overrides: str) -> list[TrtpipeError]:
    with pytest.raises(TrtpipeError) as caught:
        load(folder, *overrides)
    return caught.value.each()
