"""What the ranks' files hold, read back: the canonical checkpoint that they were divided from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from exports import canonical

from trtpipe.core.progress import Silent
from trtpipe.core.sharing import Decoder
from trtpipe.quantization.exports import trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.sanity.rank_files import RankFiles

if TYPE_CHECKING:
    from pathlib import Path

QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


@pytest.mark.parametrize(
    ("changes", "ranks", "stages"),
    [
        ({}, 1, 1),
        ({}, 8, 1),
        ({"vocab_size": 97}, 2, 1),
        ({}, 2, 2),
        ({"num_key_value_heads": 2}, 8, 1),
        ({"model_type": "qwen2", "biases": QKV, "num_key_value_heads": 2}, 4, 3),
        ({"intermediate_size": 960}, 4, 1),
        ({"biases": (*QKV, "self_attn.o_proj"), "attention_bias": True}, 2, 1),
    ],
)
def test_every_tensor_comes_back(tmp_path: Path, changes: dict[str, Any], ranks: int, stages: int) -> None:
    memory = canonical.make(tmp_path / "model", **changes)
    checkpoint = Checkpoint(tmp_path / "model")
    (tmp_path / "ranks").mkdir()
    trtllm.plan(
        checkpoint, tensor_parallel=ranks, pipeline_parallel=stages, dtype="bfloat16", kv_cache="fp8",
        pad_intermediate=True,
    ).write(tmp_path / "ranks", Silent())  # fmt: skip
    read = RankFiles(tmp_path / "ranks", Decoder.from_config(checkpoint.config))
    for index in range(checkpoint.layers):
        prefix = f"model.layers.{index}."
        wanted = {f"{name}.weight": linear.weight() for name, linear in memory.linears.items()}
        wanted |= {name: tensor.float() for name, tensor in memory.others.items() if not name.endswith("_scale")}
        own = {name.removeprefix(prefix): tensor for name, tensor in wanted.items() if name.startswith(prefix)}
        found = read.layer(index)
        assert found.keys() == own.keys()
        for name, tensor in own.items():
            assert torch.equal(found[name], tensor), name
    assert torch.equal(read.embedding(), memory.others["model.embed_tokens.weight"].float())
    assert torch.equal(read.norm(), memory.others["model.norm.weight"].float())
    assert torch.equal(read.head(), memory.others["lm_head.weight"].float())
