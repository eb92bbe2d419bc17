"""Error-compensated rounding: the error of each column is made up for by the columns not yet rounded.

The method is GPTQ's (Frantar et al. 2022) on a grid that is fixed beforehand: G takes the Hessian's place, and the
columns go in the order of falling activation energy, so that the costly ones are rounded while all others can still
make up for them.
"""

from __future__ import annotations

import torch

from trtpipe.quantization.grid import Grid, Quantized

COLUMNS_PER_BLOCK = 64
# The columns after a block are many: they learn of its errors together with those of the blocks beside it.
BLOCKS_PER_UPDATE = 4
DAMPING_SHARE = 0.01
DAMPING_STEPS = 6
TRIANGLE_BASE = 1024


def compensated(weight: torch.Tensor, gram: torch.Tensor, grid: Grid) -> tuple[Quantized, float]:
    """Round a float32 weight [out, in]; return it with the damping (share of G's mean diagonal) that it took."""
    order = gram.diagonal().argsort(descending=True)
    upper, damping = inverse_factor(gram[order][:, order])
    # transposed, so that what is rounded together lies together in memory
    remaining = weight.T[order].contiguous()
    scales, zeros = (part.T.contiguous() for part in grid.columns(order))
    codes = torch.empty_like(remaining, dtype=torch.int8)
    round_block = _on_gpu if weight.is_cuda else _column_by_column
    errors = torch.empty_like(remaining[: COLUMNS_PER_BLOCK * BLOCKS_PER_UPDATE])
    for first in range(0, len(remaining), len(errors)):
        last = min(first + len(errors), len(remaining))
        for start in range(first, last, COLUMNS_PER_BLOCK):
            part, near = slice(start, start + COLUMNS_PER_BLOCK), slice(start + COLUMNS_PER_BLOCK, last)
            made = errors[start - first : start - first + COLUMNS_PER_BLOCK]
            round_block(remaining[part], scales[part], zeros[part], upper[part, part], codes[part], made, grid)
            remaining[near].addmm_(upper[part, near].T, made, alpha=-1)
        remaining[last:].addmm_(upper[first:last, last:].T, errors[: last - first], alpha=-1)
    return grid.quantized(codes[order.argsort()].T.contiguous()), damping


def _column_by_column(
    block: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor,
    factor: torch.Tensor,
    codes: torch.Tensor,
    errors: torch.Tensor,
    grid: Grid,
) -> None:
    """Round ``block`` [columns, out]; fill ``codes`` and the ``errors`` to be made up for, of the same shape."""
    for column, values in enumerate(block):
        rounded = grid.codes(values, scales[column], zeros[column])
        codes[column] = rounded
        torch.div(values - (rounded - zeros[column]) * scales[column], factor[column, column], out=errors[column])
        block[column + 1 :].addr_(factor[column, column + 1 :], errors[column], alpha=-1)


def _on_gpu(
    block: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor,
    factor: torch.Tensor,
    codes: torch.Tensor,
    errors: torch.Tensor,
    grid: Grid,
) -> None:
    from trtpipe.quantization.rounding_kernel import round_block  # noqa: PLC0415 # needs Triton's compiler

    round_block(block, scales, zeros, factor, codes, errors, grid.limits)


def inverse_factor(gram: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the upper U with G⁻¹ = UᵀU and the damping used: raised tenfold until G is positive definite.

    Written backwards, G has a lower Cholesky factor; read forwards that is an upper R with G = RRᵀ, and U = R⁻¹. A
    channel that is always zero gets energy from the damping alone, so its weights round as they are.
    """
    mean = gram.diagonal().mean().clamp_min(torch.finfo(gram.dtype).tiny)
    damping = DAMPING_SHARE
    for _ in range(DAMPING_STEPS):
        damped = gram.flip(0, 1)
        damped.diagonal().add_(damping * mean)
        lower, fault = torch.linalg.cholesky_ex(damped)
        if not fault:
            upper = _inverse_of_upper(lower.flip(0, 1))
            if torch.isfinite(upper).all():
                return upper, damping
        damping *= 10
    raise ArithmeticError(f"G is not positive definite even with a damping of {damping / 10:g} of its mean")


def _inverse_of_upper(upper: torch.Tensor) -> torch.Tensor:
    """Invert an upper triangle by halves: nearly all of it is products, at a third of a general solution's work."""
    size = len(upper)
    if size <= TRIANGLE_BASE:
        identity = torch.eye(size, dtype=upper.dtype, device=upper.device)
        whole: torch.Tensor = torch.linalg.solve_triangular(upper, identity, upper=True)
        return whole
    half = size // 2
    inverse: torch.Tensor = torch.zeros_like(upper)
    inverse[:half, :half] = first = _inverse_of_upper(upper[:half, :half])
    inverse[half:, half:] = last = _inverse_of_upper(upper[half:, half:])
    inverse[:half, half:] = -(first @ upper[:half, half:]) @ last
    return inverse
