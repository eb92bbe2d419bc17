from __future__ import annotations

import pytest
import torch

from trtpipe.quantization import refit, rounding
from trtpipe.quantization.grid import Grid, fit, quantize
from trtpipe.quantization.recipes import RECIPES, Scheme, round_weight
from trtpipe.quantization.statistics import OutputEnergy


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
        errors.append(float(OutputEnergy(gram).of_rows(rounded.weight() - weight).sum()))
    assert errors[0] > errors[1] > 2 * errors[2]


def test_clipping_never_makes_a_row_worse() -> None:
    x = correlated_inputs()
    gram, weight = x.T @ x, torch.randn(48, 128)
    plain = round_weight(weight, gram, scheme("awq")).quantized.weight()
    clipped = round_weight(weight, gram, scheme("awq+clip")).quantized.weight()
    energy = OutputEnergy(gram)
    assert (energy.of_rows(clipped - weight) <= energy.of_rows(plain - weight) * (1 + 1e-5)).all()


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


def test_dead_channels_are_rounded_plainly_and_spoil_nothing() -> None:
    x = correlated_inputs()
    x[:, [3, 70]] = 0
    gram, weight = x.T @ x, torch.randn(48, 128, generator=torch.Generator().manual_seed(1))
    grid = fit(weight, 64, symmetric=True)
    compensated, _ = rounding.compensated(weight, gram, grid)
    assert torch.equal(compensated.codes[:, [3, 70]], grid.nearest(weight).codes[:, [3, 70]])
    energy = OutputEnergy(gram)
    plain = energy.of_rows(grid.nearest(weight).weight() - weight).sum()
    assert energy.of_rows(compensated.weight() - weight).sum() < plain


def test_the_factor_is_that_of_the_ordered_gram_matrix() -> None:
    x = torch.randn(300, 96, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    gram = x.T @ x
    order = gram.diagonal().argsort(descending=True)
    factor, damping = rounding.unit_factor(gram, order)
    damped = gram[order][:, order] + damping * gram.diagonal().mean() * torch.eye(96, dtype=torch.float64)
    assert torch.equal(factor, factor.triu())
    assert torch.equal(factor.diagonal(), torch.ones(96, dtype=torch.float64))
    inverse = torch.linalg.solve_triangular(factor, torch.eye(96, dtype=torch.float64), upper=True)
    energies = inverse @ damped @ inverse.T  # diagonal: D squared
    torch.testing.assert_close(energies, energies.diagonal().diag(), rtol=0, atol=1e-9)


def gptq(weight: torch.Tensor, gram: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Codes by the published algorithm: columns one by one, with the Cholesky factor of the inverse."""
    order = gram.diagonal().argsort(descending=True)
    damped = gram[order][:, order] + rounding.DAMPING_SHARE * gram.diagonal().mean() * torch.eye(len(gram))
    upper = torch.linalg.cholesky(torch.linalg.inv(damped.double()), upper=True).float()
    remaining, codes = weight[:, order].clone(), torch.empty_like(weight)
    for column, source in enumerate(order.tolist()):
        scale, zero = (part[:, source // grid.group_size] for part in (grid.scales, grid.zeros))
        codes[:, source] = grid.codes(remaining[:, column].clone(), scale, zero)
        error = (remaining[:, column] - (codes[:, source] - zero) * scale) / upper[column, column]
        remaining[:, column + 1 :] -= torch.outer(error, upper[column, column + 1 :])
    return codes


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_codes_are_those_of_gptq(*, symmetric: bool) -> None:
    x = correlated_inputs(width=640)
    gram, weight = x.T @ x, torch.randn(24, 640, generator=torch.Generator().manual_seed(3))
    grid = fit(weight, 64, symmetric=symmetric)
    compensated, _ = rounding.compensated(weight, gram, grid)
    # A value half-way between two codes can fall on either side; what follows in its row then differs too.
    rows_alike = (compensated.codes == gptq(weight, gram, grid)).all(dim=1)
    assert rows_alike.float().mean() > 0.9
    assert (compensated.codes != grid.nearest(weight).codes).float().mean() > 0.1


@pytest.mark.parametrize("symmetric", [True, False])
def test_refitted_scales_never_make_a_row_worse(*, symmetric: bool) -> None:
    x = correlated_inputs()
    gram, weight = x.T @ x, torch.randn(48, 128, generator=torch.Generator().manual_seed(1))
    rounded = quantize(weight, 64, symmetric=symmetric)
    energy = OutputEnergy(gram)
    better, errors = refit.refitted(weight, rounded, gram, energy)
    assert torch.equal(better.codes, rounded.codes)
    before, after = (energy.of_rows(one.weight() - weight) for one in (rounded, better))
    assert (after <= before).all()
    torch.testing.assert_close(errors, after)
    assert float(after.sum()) < 0.95 * float(before.sum())


def test_a_group_without_codes_keeps_its_scale() -> None:
    weight = torch.randn(4, 128)
    weight[:, 64:] = 0
    rounded = quantize(weight, 64)
    better, _ = refit.refitted(weight, rounded, torch.eye(128), OutputEnergy(torch.eye(128)))
    assert torch.isfinite(better.weight()).all()
    assert (better.scales > 0).all()
