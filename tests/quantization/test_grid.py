from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.quantization.grid import ASYMMETRIC, SYMMETRIC, quantize


def test_the_largest_weight_of_a_group_gets_the_largest_code() -> None:
    quantized = quantize(torch.tensor([[7.0, -3.5, 1.0, 0.0, -14.0, 2.0, 4.0, 0.0]]), 4)
    assert quantized.codes.tolist() == [[7, -4, 1, 0, -7, 1, 2, 0]]
    assert quantized.scales.tolist() == [[1.0, 2.0]]
    assert quantized.group_size == 4


def test_an_all_zero_group_stays_zero() -> None:
    quantized = quantize(torch.zeros(2, 64), 64)
    assert quantized.scales.tolist() == [[1.0], [1.0]]
    assert not quantized.weight().any()


@given(st.integers(0, 2**31), st.sampled_from([64, 128]), st.booleans())
def test_rounding_is_off_by_half_a_step_at_most(seed: int, group_size: int, symmetric: bool) -> None:
    weight = torch.randn(3, 256, generator=torch.Generator().manual_seed(seed))
    quantized = quantize(weight, group_size, symmetric=symmetric)
    low, high = SYMMETRIC if symmetric else ASYMMETRIC
    assert low <= quantized.codes.min()
    assert quantized.codes.max() <= high
    steps = quantized.scales.float().repeat_interleave(group_size, dim=1)
    # half a step; at the group's ends also what the scale (2^-9 of 15 steps) and the zero point lost by rounding
    slack = 0.5 + 15 * 2**-8 + (0 if symmetric else 0.5)
    assert ((quantized.weight() - weight).abs() <= steps * slack).all()


def test_an_asymmetric_grid_uses_all_sixteen_codes() -> None:
    quantized = quantize(torch.arange(16.0).reshape(1, 16) - 3, 16, symmetric=False)
    assert quantized.codes.tolist() == [list(range(16))]
    assert quantized.zeros is not None
    assert quantized.zeros.tolist() == [[3]]
    assert torch.equal(quantized.weight(), torch.arange(16.0).reshape(1, 16) - 3)


@given(st.integers(0, 2**31))
def test_stored_scales_are_exact_in_float16_too(seed: int) -> None:
    scales = quantize(torch.randn(4, 128, generator=torch.Generator().manual_seed(seed)) * 0.05, 64).scales
    assert torch.equal(scales.float(), scales.half().float())
