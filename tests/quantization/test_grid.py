from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.quantization.grid import CODE_MAX, CODE_MIN, quantize


def test_the_largest_weight_of_a_group_gets_the_largest_code() -> None:
    quantized = quantize(torch.tensor([[7.0, -3.5, 1.0, 0.0, -14.0, 2.0, 4.0, 0.0]]), 4)
    assert quantized.codes.tolist() == [[7, -4, 1, 0, -7, 1, 2, 0]]
    assert quantized.scales.tolist() == [[1.0, 2.0]]
    assert quantized.group_size == 4


def test_an_all_zero_group_stays_zero() -> None:
    quantized = quantize(torch.zeros(2, 64), 64)
    assert quantized.scales.tolist() == [[1.0], [1.0]]
    assert not quantized.weight().any()


@given(st.integers(0, 2**31), st.sampled_from([64, 128]))
def test_rounding_is_off_by_half_a_step_at_most(seed: int, group_size: int) -> None:
    weight = torch.randn(3, 256, generator=torch.Generator().manual_seed(seed))
    quantized = quantize(weight, group_size)
    assert quantized.codes.min() >= CODE_MIN
    assert quantized.codes.max() <= CODE_MAX
    steps = quantized.scales.float().repeat_interleave(group_size, dim=1)
    # half a step, and at the group's end what the scale lost by its own rounding to bfloat16 (2^-9 of 7 steps)
    assert ((quantized.weight() - weight).abs() <= steps * (0.5 + 7 * 2**-8)).all()


@given(st.integers(0, 2**31))
def test_stored_scales_are_exact_in_float16_too(seed: int) -> None:
    scales = quantize(torch.randn(4, 128, generator=torch.Generator().manual_seed(seed)) * 0.05, 64).scales
    assert torch.equal(scales.float(), scales.half().float())
