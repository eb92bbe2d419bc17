"""The plugin's 4-bit weights are the checkpoint's, and its products those of float32."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from vllm.model_executor.kernels.linear import MPLinearLayerConfig
from vllm.scalar_type import scalar_types

from trtpipe.engines.vllm_float32_products import ExpandedLinearKernel
from trtpipe.quantization.compressed_tensors import pack
from trtpipe.quantization.grid import quantize

OUT, IN, GROUP = 96, 128, 32


@pytest.fixture
def kernel() -> ExpandedLinearKernel:
    config = MPLinearLayerConfig(
        full_weight_shape=(IN, OUT), partition_weight_shape=(IN, OUT), weight_type=scalar_types.uint4b8,
        act_type=torch.bfloat16, group_size=GROUP, zero_points=False,
    )  # fmt: skip
    return ExpandedLinearKernel(config, "weight_packed", "weight_scale")


def packed(layout: int) -> SimpleNamespace:
    quantized = quantize(torch.randn(OUT, IN), GROUP)
    weight = torch.nn.Parameter(pack(quantized.codes), requires_grad=False)
    weight.packed_dim = layout  # type: ignore[attr-defined] # as vLLM's own parameters
    return SimpleNamespace(weight_packed=weight, weight_scale=quantized.scales, expected=quantized.weight())


def test_the_expanded_weight_is_what_the_codes_stand_for(kernel: ExpandedLinearKernel) -> None:
    layer = packed(1)
    kernel.process_weights_after_loading(layer)
    torch.testing.assert_close(layer.expanded, layer.expected, rtol=0, atol=0)
    x, bias = torch.randn(3, IN).bfloat16(), torch.randn(OUT).bfloat16()
    product = x.double() @ layer.expected.double().T + bias.double()
    torch.testing.assert_close(kernel.apply_weights(layer, x, bias), product.bfloat16(), rtol=2**-8, atol=1e-6)


def test_another_layout_is_refused(kernel: ExpandedLinearKernel) -> None:
    with pytest.raises(ValueError, match="packed along the input"):
        kernel.process_weights_after_loading(packed(0))
