from __future__ import annotations

import pytest
import torch

from trtpipe.quantization import refit, rounding
from trtpipe.quantization.grid import fit, quantize
from trtpipe.quantization.recipes import RECIPES, Scheme, round_weight
from trtpipe.quantization.statistics import row_errors


def correlated_inputs(width: int = 128) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(width // 4, width, generator=generator)
    return torch.randn(2000, width // 4, generator=generator) @ mixing + 0.1 * torch.randn(
        2000, width, generator=generator
    )


def scheme(recipe: str, *, symmetric: bool = True) -> Scheme:
    return Scheme(RECIPES[recipe], 64, 10, symmetric)


@pytest.mark.parametrize("symmetric", [True, False])
def test_each_step_brings_the_outputs_closer(*, symmetric: bool) -> None:
    x = correlated_inputs()
    gram, weight = x.T @ x, torch.randn(48, 128, generator=torch.Generator().manual_seed(1))
    weight[:, ::17] *= 3
    errors = []
    for name in ("rtn", "awq+clip", "awq+clip+round"):
        rounded = round_weight(weight, gram, scheme(name, symmetric=symmetric)).quantized
        errors.append(float(row_errors(rounded.weight() - weight, gram).sum()))
    assert errors[0] > errors[1] > 2 * errors[2]


def test_clipping_never_makes_a_row_worse() -> None:
    x = correlated_inputs()
    gram, weight = x.T @ x, torch.randn(48, 128)
    plain = round_weight(weight, gram, scheme("awq")).quantized.weight()
    clipped = round_weight(weight, gram, scheme("awq+clip")).quantized.weight()
    assert (row_errors(clipped - weight, gram) <= row_errors(plain - weight, gram) * (1 + 1e-5)).all()


def test_without_correlation_compensation_is_plain_rounding() -> None:
    weight = torch.randn(8, 64)
    grid = fit(weight, 64)
    compensated, damping = rounding.compensated(weight, torch.eye(64), grid)
    assert torch.equal(compensated.codes, grid.nearest(weight).codes)
    assert damping == rounding.DAMPING_SHARE


def test_the_damping_is_raised_for_a_singular_gram_matrix_and_reported() -> None:
    gram = torch.full((64, 64), 1e6)
    gram[3] = gram[:, 3] = 0  # a dead channel
    gram -= torch.eye(64) * 3e4  # indefinite, as float32 sums of huge values can be
    weight = torch.randn(4, 64)
    compensated, damping = rounding.compensated(weight, gram, fit(weight, 64))
    assert damping > rounding.DAMPING_SHARE
    assert torch.isfinite(compensated.weight()).all()


@pytest.mark.parametrize("size", [64, 96, 1100])
def test_the_factor_is_that_of_the_inverse(size: int) -> None:
    x = torch.randn(size * 3, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    gram = x.T @ x
    upper, damping = rounding.inverse_factor(gram)
    damped = gram + damping * gram.diagonal().mean() * torch.eye(size)
    assert torch.equal(upper, upper.triu())
    torch.testing.assert_close(upper.T @ upper @ damped, torch.eye(size, dtype=torch.float64), rtol=0, atol=1e-9)


@pytest.mark.parametrize("symmetric", [True, False])
def test_refitted_scales_never_make_a_row_worse(*, symmetric: bool) -> None:
    x = correlated_inputs()
    gram, weight = x.T @ x, torch.randn(48, 128, generator=torch.Generator().manual_seed(1))
    rounded = quantize(weight, 64, symmetric=symmetric)
    better = refit.refitted(weight, rounded, gram)
    assert torch.equal(better.codes, rounded.codes)
    before, after = (row_errors(one.weight() - weight, gram) for one in (rounded, better))
    assert (after <= before).all()
    assert float(after.sum()) < 0.95 * float(before.sum())


def test_a_group_without_codes_keeps_its_scale() -> None:
    weight = torch.randn(4, 128)
    weight[:, 64:] = 0
    rounded = quantize(weight, 64)
    better = refit.refitted(weight, rounded, torch.eye(128))
    assert torch.isfinite(better.weight()).all()
    assert (better.scales > 0).all()
