"""Search, for each group of weights, how far its largest weights may be clipped for a finer grid.

The output error of a group alone is E_g G_gg E_gᵀ with the diagonal block of G that belongs to it: cheap, and right
but for the groups' interplay. So the result is held against no clipping with the full G, row by row, and a row that
lost goes back.
"""

from __future__ import annotations

import torch

from trtpipe.quantization.grid import ASYMMETRIC, SYMMETRIC, rounding_error
from trtpipe.quantization.statistics import OutputEnergy, diagonal_blocks

# Bounds what is in memory beside the weight itself.
ROWS_AT_ONCE = 8192
# Shares of a group's largest magnitude that are kept.
KEPT_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)


def search(
    weight: torch.Tensor, gram: torch.Tensor, energy: OutputEnergy, group_size: int, *, symmetric: bool
) -> torch.Tensor:
    """Return the share to keep [out, in / group_size] for a float32 weight [out, in]. ``energy``: that of ``gram``."""
    blocks = diagonal_blocks(gram, group_size)
    best_shares = _on_gpu if weight.is_cuda else _one_by_one
    parts = [
        _keep_where_it_helps(rows, energy, best_shares(rows, blocks, symmetric), group_size, symmetric=symmetric)
        for rows in weight.split(ROWS_AT_ONCE)
    ]
    return torch.cat(parts)


def _one_by_one(weight: torch.Tensor, blocks: torch.Tensor, symmetric: bool) -> torch.Tensor:
    """Return the share of least error of each row and group, G's diagonal blocks [groups, size, size] given."""
    groups, size, _ = blocks.shape
    kept = weight.new_ones(len(weight), groups)
    least = torch.full_like(kept, torch.inf)
    for share in KEPT_SHARES:
        error = rounding_error(weight, size, symmetric=symmetric, kept=torch.full_like(kept, share))
        error = error.reshape(-1, groups, size).transpose(0, 1)
        group_error = ((error @ blocks) * error).sum(dim=2).T
        kept[group_error < least] = share
        least = torch.minimum(group_error, least)
    return kept


def _on_gpu(weight: torch.Tensor, blocks: torch.Tensor, symmetric: bool) -> torch.Tensor:
    from trtpipe.quantization.clipping_kernel import best_shares  # noqa: PLC0415 # needs Triton's compiler

    kept: torch.Tensor = best_shares(weight, blocks, KEPT_SHARES, SYMMETRIC if symmetric else ASYMMETRIC)
    return kept


def _keep_where_it_helps(
    weight: torch.Tensor, energy: OutputEnergy, kept: torch.Tensor, group_size: int, *, symmetric: bool
) -> torch.Tensor:
    clipped = energy.of_rows(rounding_error(weight, group_size, symmetric=symmetric, kept=kept))
    whole = energy.of_rows(rounding_error(weight, group_size, symmetric=symmetric))
    return torch.where((clipped < whole).unsqueeze(1), kept, torch.ones_like(kept))
