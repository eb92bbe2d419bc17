"""Cholesky factors of large matrices on a GPU: by blocks, so that nearly all of the work are products."""

from __future__ import annotations

import torch

BLOCK = 2048


def lower_factor(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a lower L with L Lᵀ = ``matrix`` and how many blocks [] were not positive definite.

    The products round their inputs as the device is set to: with TF32, L is right to about 1 in 1,000 of each
    channel's own energy, which is all that rounding to 4 bits can tell.
    """
    lower = matrix.clone()
    faults = torch.zeros((), dtype=torch.int32, device=matrix.device)
    for start in range(0, len(lower), BLOCK):
        block, rest = slice(start, start + BLOCK), slice(start + BLOCK, None)
        corner, fault = torch.linalg.cholesky_ex(lower[block, block])
        faults += fault != 0
        identity = torch.eye(len(corner), dtype=corner.dtype, device=corner.device)
        inverse = torch.linalg.solve_triangular(corner, identity, upper=False)
        panel = lower[rest, block] @ inverse.T
        lower[block, block], lower[rest, block] = corner, panel
        for column in range(start + BLOCK, len(lower), BLOCK):
            below = panel[column - start - BLOCK :]
            lower[column:, column : column + BLOCK].addmm_(below, below[:BLOCK].T, alpha=-1)
    return lower.tril_(), faults
