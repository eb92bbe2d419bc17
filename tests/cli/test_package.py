"""``trtpipe package --check``, as a user gives it: everything that is wrong with a repository, in one message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from served_engines import TENSORRT_LLM
from trtpipe.triton_repo import configs, pbtxt
from workspaces import trtpipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, config in configs.build(TENSORRT_LLM).items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.py").touch()
        (tmp_path / name / "config.pbtxt").write_text(pbtxt.render(config), encoding="utf-8")
    return tmp_path


def test_a_repository_in_order(repository: Path) -> None:
    result = trtpipe("package", "--check", ".", "--json", folder=repository)

    assert result.code == 0, result.stderr
    assert result.document["models"][1] == "tensorrt_llm"


def test_all_that_is_wrong_is_said_at_once(repository: Path, golden: Callable[[str, str], None]) -> None:
    edits = [
        ("tensorrt_llm", "max_batch_size: 64", "max_batch_size: ${triton_max_batch_size}"),
        ("tensorrt_llm", 'backend: "tensorrtllm"', 'backend: "${triton_backend}"'),
        ("tensorrt_llm", '"gpt_model_path"', '"engine_dir"'),
        ("tensorrt_llm_bls", "decoupled: true", "decoupled: false"),
        ("ensemble", 'value: "_TOKENS_BATCH"', 'value: "_TOKENS"'),
        ("postprocessing", "TYPE_STRING", "TYPE_BYTES"),
    ]
    for model, old, new in edits:
        path = repository / model / "config.pbtxt"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    result = trtpipe("package", "--check", ".", folder=repository)
    document = json.loads(trtpipe("package", "--check", ".", "--json", folder=repository).stdout)

    assert result.code == 3
    assert not document["ok"]
    golden("package_check.txt", result.stderr)
