"""Error-compensated rounding: the error of each column is made up for by the columns not yet rounded.

The method is GPTQ's (Frantar et al. 2022) on a grid that is fixed beforehand: G takes the Hessian's place, and the
columns go in the order of falling activation energy, so that the costly ones are rounded while all others can still
make up for them.
"""

from __future__ import annotations

import torch

from trtpipe.quantization.grid import Grid, Quantized

COLUMNS_PER_BLOCK = 64
DAMPING_SHARE = 0.01
DAMPING_STEPS = 6


def compensated(weight: torch.Tensor, gram: torch.Tensor, grid: Grid) -> tuple[Quantized, float]:
    """Round a float32 weight [out, in]; return it with the damping (share of G's mean diagonal) that it took."""
    order = gram.diagonal().argsort(descending=True)
    upper, damping = inverse_factor(gram[order][:, order])
    # transposed, so that what is rounded together lies together in memory
    remaining = weight.T[order].contiguous()
    scales, zeros = (part.T.contiguous() for part in grid.columns(order))
    codes = torch.empty_like(remaining, dtype=torch.int8)
    for start in range(0, len(remaining), COLUMNS_PER_BLOCK):
        end = min(start + COLUMNS_PER_BLOCK, len(remaining))
        block, errors = remaining[start:end], torch.empty_like(remaining[start:end])
        factor = upper[start:end, start:end]
        for column, values in enumerate(block):
            scale, zero = scales[start + column], zeros[start + column]
            rounded = grid.codes(values, scale, zero)
            codes[start + column] = rounded
            torch.div(values - (rounded - zero) * scale, factor[column, column], out=errors[column])
            block[column + 1 :].addr_(factor[column, column + 1 :], errors[column], alpha=-1)
        remaining[end:].addmm_(upper[start:end, end:].T, errors, alpha=-1)
    return grid.quantized(codes[order.argsort()].T.contiguous()), damping


def inverse_factor(gram: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the upper Cholesky factor of G⁻¹ and the damping used: raised tenfold until G is positive definite.

    A channel that is always zero gets energy from the damping alone, so its weights round as they are.
    """
    mean = gram.diagonal().mean().clamp_min(torch.finfo(gram.dtype).tiny)
    damping = DAMPING_SHARE
    for _ in range(DAMPING_STEPS):
        damped = gram.clone()
        damped.diagonal().add_(damping * mean)
        lower, fault = torch.linalg.cholesky_ex(damped)
        if not fault:
            upper, fault = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
            if not fault:
                return upper, damping
        damping *= 10
    raise ArithmeticError(f"G is not positive definite even with a damping of {damping / 10:g} of its mean")
