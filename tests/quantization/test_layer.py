"""Folding alone changes nothing: the same outputs in float64, whatever the scales."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import torch

from trtpipe.quantization import experts
from trtpipe.quantization.architectures import ScaleGroup
from trtpipe.quantization.forward import Batch, collecting, forward
from trtpipe.quantization.layer import QuantizedLayer, fold, outliers, quantize_layer, storable
from trtpipe.quantization.recipes import RECIPES, Scheme
from trtpipe.quantization.stack import DecoderStack

TOKENS = 40


def whole(hidden: torch.Tensor) -> list[Batch]:
    """A batch without filling."""
    return [Batch(hidden, torch.ones(hidden.shape[:2], dtype=torch.bool))]


def folded(stack: DecoderStack, layer: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The layer's tensors after folds of random scales: about 0.2 to 5, equal within query groups of two heads."""
    tensors = {name: tensor.clone() for name, tensor in experts.apart(layer.state_dict()).items()}
    for group in stack.architecture.groups_of(tensors):
        scale = (0.5 * torch.randn(tensors[f"{group.linears[0]}.weight"].shape[1], dtype=torch.float64)).exp()
        if group.per_query_group:
            scale = scale.unflatten(0, (2, 2, -1))[:, :1].expand(2, 2, -1).flatten()
        fold(tensors, group, scale, stack.config)
    return experts.together(tensors)


@pytest.mark.parametrize("model_type", tiny.OWN)
def test_folding_keeps_every_layer_and_the_logits(tmp_path: Path, model_type: str) -> None:
    stack = DecoderStack(tiny.own(tmp_path, model_type), dtype=torch.float64)
    model = tiny.model_of(tmp_path)
    ids, hidden = torch.randint(0, 96, (2, TOKENS)), whole(torch.randn(2, TOKENS, 128, dtype=torch.float64))
    with torch.inference_mode():
        logits = model(ids).logits
    for index in range(stack.layers):
        layer = stack.layer(index)
        before, tensors = forward(layer, hidden, stack.arguments(index))[0].inputs, folded(stack, layer)
        moved = [name for name, tensor in layer.state_dict().items() if not torch.equal(tensor, tensors[name])]
        assert sum("norm" in name for name in moved) == 2
        layer.load_state_dict(tensors)
        after = forward(layer, hidden, stack.arguments(index))[0].inputs
        # The residual would hide an error of the layer's own work.
        assert float((after - before).norm() / (before - hidden[0].inputs).norm()) < 1e-6
        model.model.layers[index].load_state_dict(tensors)
    with torch.inference_mode():
        assert float((model(ids).logits - logits).norm() / logits.norm()) < 1e-6


@pytest.mark.parametrize("kind", ["norm", "norm plus one"])
def test_a_norms_scale_is_one_that_bfloat16_can_hold(kind: str) -> None:
    offset = 1.0 if kind == "norm plus one" else 0.0
    weight = (torch.randn(512) * 0.3 + 1 - offset).bfloat16().float()
    weight[7] = -offset  # a channel that is off
    tensors = {"norm.weight": weight.clone(), "linear.weight": torch.ones(1, 512)}
    group = ScaleGroup("input", ("linear",), "norm", kind)  # type: ignore[arg-type]
    asked = torch.logspace(-1.5, 1.5, 512)
    scale = storable(tensors, group, asked, torch.bfloat16)
    fold(tensors, group, scale, None)  # type: ignore[arg-type]
    stored = tensors["norm.weight"].bfloat16().float() + offset
    torch.testing.assert_close(stored * tensors["linear.weight"][0], weight + offset, rtol=1e-6, atol=1e-7)
    assert scale[7] == 1
    # half a bfloat16 step of a weight near -1 is 2^-9, and here one plus the divided weight may be as small as 0.05
    assert ((scale / asked - 1).abs() < (0.05 if offset else 2**-8))[weight + offset > 1.6].all()


def quantized(tmp_path: Path, model_type: str, tokens: int = TOKENS) -> tuple[QuantizedLayer, list[torch.Tensor]]:
    """Layer 0 quantized, and its outputs before and after."""
    stack = DecoderStack(tiny.own(tmp_path, model_type), dtype=torch.float32)
    hidden = whole(torch.randn(2, tokens, 128) * torch.linspace(0.1, 8, 128))
    layer, arguments = stack.layer(0), stack.arguments(0)
    groups = stack.architecture.groups_of(experts.apart(layer.state_dict()))
    with collecting(layer, groups) as collector:
        original = forward(layer, hidden, arguments, collector)[0].inputs
    with torch.inference_mode():
        result = quantize_layer(
            layer, groups, stack.config, collector.statistics, scheme=Scheme(RECIPES["awq"], 64, 10, symmetric=True),
            stored=torch.float32,
        )  # fmt: skip
    assert set(result.linears) == {name for group in groups for name in group.linears}
    return result, [hidden[0].inputs, original, forward(layer, hidden, arguments)[0].inputs]


@pytest.mark.parametrize("model_type", tiny.OWN)
def test_awq_is_closer_than_plain_rounding(tmp_path: Path, model_type: str) -> None:
    result, (inputs, original, final) = quantized(tmp_path, model_type)
    seen = [error for error in result.errors if error.awq is not None and error.plain_rounding is not None]
    assert all(error.awq <= error.plain_rounding for error in seen)  # type: ignore[operator]
    assert any(error.alpha > 0 for error in seen)
    assert 0 < float((final - original).norm() / (original - inputs).norm()) < 0.3


def test_channels_much_larger_than_most_are_counted_and_the_largest_is_named() -> None:
    magnitude = torch.ones(64)
    magnitude[[5, 9, 20, 21]] = torch.tensor([30.0, 11.0, 10.0, 0.0])
    found = outliers(magnitude)
    assert found == {
        "outlier_channels": 2, "dead_channels": 1, "largest_channel": 5, "largest_over_median": 30.0
    }  # fmt: skip


def test_an_expert_without_tokens_keeps_plain_rounding_and_says_so(tmp_path: Path) -> None:
    result, _ = quantized(tmp_path, "mixtral", tokens=1)
    by_expert = [error for error in result.errors if error.group.startswith("expert ")]
    assert len(by_expert) == 4
    assert sum(error.tokens for error in by_expert) == 4  # two tokens, two experts each
    idle = [error for error in by_expert if not error.tokens]
    assert idle
    assert all((error.alpha, error.plain_rounding, error.awq) == (0, None, None) for error in idle)
