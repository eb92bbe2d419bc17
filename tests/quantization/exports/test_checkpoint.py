from __future__ import annotations

from pathlib import Path

import pytest
import torch
from exports import canonical

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.checkpoint import Checkpoint


@pytest.mark.parametrize("symmetric", [True, False])
def test_linears_come_back_as_they_were_packed(tmp_path: Path, symmetric: bool) -> None:
    memory = canonical.make(tmp_path / "source", symmetric=symmetric)
    checkpoint = Checkpoint(tmp_path / "source")
    assert (checkpoint.group_size, checkpoint.symmetric, checkpoint.layers) == (64, symmetric, 3)
    for name, expected in memory.linears.items():
        found = checkpoint.linear(name)
        assert torch.equal(found.codes, expected.codes)
        assert torch.equal(found.scales, expected.scales)
        if expected.zeros is not None:
            assert found.zeros is not None
            assert torch.equal(found.zeros, expected.zeros)


def test_another_layout_is_refused(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    config = tmp_path / "source/config.json"
    config.write_text(config.read_text().replace("pack-quantized", "naive-quantized"))
    with pytest.raises(ConfigError, match="not an int4 group-wise checkpoint"):
        Checkpoint(tmp_path / "source")


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    shard = tmp_path / "source/model-00002-of-00004.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(ConfigError, match="not a whole safetensors file") as caught:
        Checkpoint(tmp_path / "source").linear("model.layers.1.mlp.up_proj")
    assert caught.value.where == str(shard)
