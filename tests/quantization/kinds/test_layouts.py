"""Layouts read back, each against words packed by hand from its description."""

from __future__ import annotations

import pytest
import torch

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.exports.autoawq import linear_tensors
from trtpipe.quantization.grid import quantize
from trtpipe.quantization.kinds import layouts


def packed(values: torch.Tensor) -> torch.Tensor:
    """Pack values 0..15 [rows, columns] into int32 [rows, columns / 8], lowest nibble first."""
    words = torch.zeros(values.shape[0], values.shape[1] // 8, dtype=torch.int64)
    for place in range(8):
        words |= values[:, place::8].to(torch.int64) << (4 * place)
    return words.to(torch.int32)


def test_autoawq_is_what_we_export() -> None:
    quantized = quantize(torch.randn(16, 128), 64, symmetric=False)
    tensors = {f"x.{name}": tensor for name, tensor in linear_tensors(quantized).items()}
    read = layouts.autoawq(tensors.__getitem__, "x")
    assert torch.equal(read.weight(), quantized.weight())


@pytest.mark.parametrize("offset", [0, 1])
def test_gptq_packs_along_the_input_and_may_leave_one_off_its_zero_points(offset: int) -> None:
    quantized = quantize(torch.randn(16, 128) + 0.2, 64, symmetric=False)
    assert quantized.zeros is not None
    zeros = quantized.zeros.clamp_min(offset)
    tensors = {
        "x.qweight": packed(quantized.codes).T.contiguous(),
        "x.qzeros": packed((zeros - offset).T.contiguous()),
        "x.scales": quantized.scales.T.half(),
        "x.g_idx": torch.arange(128, dtype=torch.int32) // 64,
    }
    read = layouts.gptq(tensors.__getitem__, "x", symmetric=False, zero_offset=offset)
    assert torch.equal(read.codes, quantized.codes)
    assert read.zeros is not None
    assert torch.equal(read.zeros, zeros)
    assert torch.equal(read.scales, quantized.scales)
    tensors["x.g_idx"] = tensors["x.g_idx"].flip(0)
    with pytest.raises(ConfigError, match="desc_act"):
        layouts.gptq(tensors.__getitem__, "x", symmetric=False, zero_offset=offset)


def test_symmetric_gptq_has_zero_point_eight_everywhere() -> None:
    quantized = quantize(torch.randn(16, 64), 64)
    tensors = {
        "x.qweight": packed(quantized.codes + 8).T.contiguous(),
        "x.qzeros": packed(torch.full((1, 16), 7)),
        "x.scales": quantized.scales.T.half(),
        "x.g_idx": torch.zeros(64, dtype=torch.int32),
    }
    read = layouts.gptq(tensors.__getitem__, "x", symmetric=True, zero_offset=1)
    assert read.zeros is None
    assert torch.equal(read.codes, quantized.codes)
    for symmetric, offset in ((True, 0), (False, 9)):
        with pytest.raises(ConfigError, match="a zero point is"):
            layouts.gptq(tensors.__getitem__, "x", symmetric=symmetric, zero_offset=offset)


def test_modelopt_keeps_two_rows_a_byte_and_a_row_scale_goes_into_the_scales() -> None:
    quantized = quantize(torch.randn(8, 64), 64)
    tensors = {"x.weight": nibbles.pack_row_pairs(quantized.codes).view(torch.uint8),
               "x.weight_scale": quantized.scales.float()}  # fmt: skip
    read = layouts.modelopt(tensors.__getitem__, "x", torch.full((8,), 2.0))
    assert torch.equal(read.codes, quantized.codes)
    assert torch.equal(read.weight(), quantized.weight() * 2)


def test_scales_that_no_linear_can_take_in_are_refused() -> None:
    quantized = quantize(torch.randn(8, 64), 64)
    tensors = {"x.weight": nibbles.pack_row_pairs(quantized.codes).view(torch.uint8),
               "x.weight_scale": quantized.scales.float()}  # fmt: skip
    with pytest.raises(ConfigError, match="differ between query heads"):
        layouts.modelopt(tensors.__getitem__, "x", torch.ones(16))
