from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trtpipe.quantization import shards
from trtpipe.quantization.shards import ShardWriter

TENSORS = {"model.norm.weight": torch.ones(4)}
WHOLE = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", shards.INDEX}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_holds_shards_and_index_and_nothing_else(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, layers=1)
    for shard in range(2):
        writer.write(shard, TENSORS)
    writer.finish()
    assert names(tmp_path) == WHOLE


def test_what_a_killed_run_left_of_a_shard_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(tensors: object, path: Path, metadata: object) -> None:
        path.with_name(".tmp9cAQAs").write_bytes(b"half")  # what safetensors writes to before it renames
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shards, "save_file", killed)
        with pytest.raises(KeyboardInterrupt):
            ShardWriter(tmp_path, layers=1).write(0, TENSORS)
    assert WHOLE.isdisjoint(names(tmp_path))
    writer = ShardWriter(tmp_path, layers=1)
    for shard in range(2):
        writer.write(shard, TENSORS)
    writer.finish()
    assert names(tmp_path) == WHOLE
