"""Error-compensated rounding: the error of each column is made up for by the columns not yet rounded.

The method is GPTQ's (Frantar et al. 2022) on a grid that is fixed beforehand: G takes the Hessian's place, and the
columns go in the order of falling activation energy, so that the costly ones are rounded while all others can still
make up for them. It is computed as Babai's nearest plane, which gives the same codes (Chen et al. 2025) and needs no
inverse: with G = R D² Rᵀ, R upper with a unit diagonal, the errors E of a row cost |E R D|², so column j is rounded
at its weight plus the sum of E_i R_ij over the columns i before it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from trtpipe.quantization import cholesky
from trtpipe.quantization.grid import Grid, Quantized

COLUMNS_PER_BLOCK = 64
# The columns after a block are many: they learn of its errors together with those of the blocks beside it.
BLOCKS_PER_UPDATE = 4
DAMPING_SHARE = 0.01
DAMPING_STEPS = 6
# What a GPU does fast comes first, what is right to the last bit where that was not enough.
FACTORISATIONS = {
    "cpu": (torch.linalg.cholesky_ex,),
    "cuda": (cholesky.lower_factor, torch.linalg.cholesky_ex),
}


def compensated(weight: torch.Tensor, gram: torch.Tensor, grid: Grid) -> tuple[Quantized, float]:
    """Round a float32 weight [out, in]; return it with the damping (share of G's mean diagonal) that it took."""
    order = gram.diagonal().argsort(descending=True)
    factor, damping = unit_factor(gram, order)
    # transposed, so that what is rounded together lies together in memory
    weights = weight.T[order]
    targets = weights.clone()
    scales, zeros, group = grid.scales.T.contiguous(), grid.zeros.T.contiguous(), order // grid.group_size
    codes = torch.empty_like(weights, dtype=torch.int8)
    errors = torch.empty_like(weights[: COLUMNS_PER_BLOCK * BLOCKS_PER_UPDATE])
    round_block = _rounding_of_a_block(weight.device)
    for first in range(0, len(weights), len(errors)):
        last = min(first + len(errors), len(weights))
        for start in range(first, last, COLUMNS_PER_BLOCK):
            part, near = slice(start, start + COLUMNS_PER_BLOCK), slice(start + COLUMNS_PER_BLOCK, last)
            made = errors[start - first : start - first + COLUMNS_PER_BLOCK]
            round_block(
                targets[part], weights[part], factor[part, part], scales, zeros, group[part], codes[part], made, grid
            )
            targets[near].addmm_(factor[part, near].T, made)
        targets[last:].addmm_(factor[first:last, last:].T, errors[: last - first])
    return grid.quantized(codes[order.argsort()].T.contiguous()), damping


def _rounding_of_a_block(device: torch.device) -> Callable[..., None]:
    if device.type == "cpu":
        return _column_by_column
    from trtpipe.quantization.rounding_kernel import round_block  # noqa: PLC0415 # needs Triton's compiler

    return round_block


def _column_by_column(
    targets: torch.Tensor,
    weights: torch.Tensor,
    factor: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor,
    group: torch.Tensor,
    codes: torch.Tensor,
    errors: torch.Tensor,
    grid: Grid,
) -> None:
    """Round columns of the transposed ``weights`` at their ``targets``; fill ``codes`` and ``errors``.

    These four are [columns, out]; ``factor`` [columns, columns] is the block of R on its diagonal; ``scales`` and
    ``zeros`` [groups, out]; ``group`` [columns] says which row of them is a column's.
    """
    for column, own in enumerate(group.tolist()):
        rounded = grid.codes(targets[column], scales[own], zeros[own])
        codes[column] = rounded
        torch.sub(weights[column], rounded.sub_(zeros[own]).mul_(scales[own]), out=errors[column])
        targets[column + 1 :].addr_(factor[column, column + 1 :], errors[column])


def unit_factor(gram: torch.Tensor, order: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return R of G with its channels in ``order``, and the damping: raised tenfold until G is positive definite.

    Written backwards, G has a lower Cholesky factor, which read forwards is R D. A channel that is always zero gets
    energy from the damping alone, so its weights round as they are.
    """
    mean = gram.diagonal().mean().clamp_min(torch.finfo(gram.dtype).tiny)
    backwards = order.flip(0)
    damping = DAMPING_SHARE
    for _ in range(DAMPING_STEPS):
        damped = gram[backwards][:, backwards]
        damped.diagonal().add_(damping * mean)
        for factorise in FACTORISATIONS[gram.device.type]:
            lower, fault = factorise(damped)
            if not fault and torch.isfinite(lower).all():
                return lower.div_(lower.diagonal().clone()).flip(0, 1), damping
        damping *= 10
    raise ArithmeticError(f"G is not positive definite even with a damping of {damping / 10:g} of its mean")
