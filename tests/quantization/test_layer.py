"""Folding alone changes nothing: the same outputs in float64, whatever the scales."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import torch

from trtpipe.quantization import kv_range
from trtpipe.quantization.architectures import architecture_of
from trtpipe.quantization.forward import Batch, collecting, forward
from trtpipe.quantization.layer import fold, quantize_layer
from trtpipe.quantization.stack import DecoderStack

kv_range.register()


def whole(hidden: torch.Tensor) -> list[Batch]:
    """A batch without filling."""
    return [Batch(hidden, torch.ones(hidden.shape[:2], dtype=torch.bool))]


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3", "mistral"])
def test_folding_keeps_the_layer(tmp_path: Path, model_type: str) -> None:
    stack = DecoderStack(tiny.save(tmp_path, model_type), dtype=torch.float64)
    layer, hidden = stack.layer(0), whole(torch.randn(2, 9, 128, dtype=torch.float64))
    before = forward(layer, hidden, stack.rotary)[0].inputs
    tensors = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    for group in architecture_of(model_type).groups:
        width = tensors[f"{group.linears[0]}.weight"].shape[1]
        scale = torch.rand(width, dtype=torch.float64) + 0.5
        if group.per_query_group:
            scale = scale.unflatten(0, (2, 2, -1))[:, :1].expand(2, 2, -1).flatten()
        fold(tensors, group, scale, stack.config)
    layer.load_state_dict(tensors)
    torch.testing.assert_close(forward(layer, hidden, stack.rotary)[0].inputs, before, rtol=1e-6, atol=1e-9)


def test_awq_is_closer_than_plain_rounding(tmp_path: Path) -> None:
    stack = DecoderStack(tiny.save(tmp_path), dtype=torch.float32)
    architecture = architecture_of("llama")
    hidden = whole(torch.randn(2, 40, 128) * torch.linspace(0.1, 8, 128))
    layer = stack.layer(0)
    inputs = {group.name: group.linears[0] for group in architecture.groups}
    with collecting(layer, inputs) as collector:
        original = forward(layer, hidden, stack.rotary, collector)[0].inputs
    with torch.inference_mode():
        result = quantize_layer(
            layer, architecture, stack.config, collector.statistics, recipe="awq", group_size=64, grid_points=10
        )
    assert all(error.awq <= error.plain_rounding for error in result.errors)
    assert set(result.linears) == set(architecture.linears)
    quantized = forward(layer, hidden, stack.rotary)[0].inputs
    assert 0 < float((quantized - original).norm() / original.norm()) < 0.2
