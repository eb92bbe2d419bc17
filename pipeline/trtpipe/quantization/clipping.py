"""Search, for each group of weights, how far its largest weights may be clipped for a finer grid.

The output error of a group alone is E_g G_gg E_gᵀ with the diagonal block of G that belongs to it: cheap, and right
but for the groups' interplay. So the result is held against no clipping with the full G, row by row, and a row that
lost goes back.
"""

from __future__ import annotations

import torch

from trtpipe.quantization.grid import fit
from trtpipe.quantization.statistics import row_errors

# Shares of a group's largest magnitude that are kept.
KEPT_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)


def search(weight: torch.Tensor, gram: torch.Tensor, group_size: int, *, symmetric: bool) -> torch.Tensor:
    """Return the share to keep [out, in / group_size] for a float32 weight [out, in]."""
    groups = weight.shape[1] // group_size
    blocks = torch.stack(_diagonal_blocks(gram, group_size))
    kept = torch.ones(weight.shape[0], groups, device=weight.device)
    least = None
    for share in KEPT_SHARES:
        grid = fit(weight, group_size, symmetric=symmetric, kept=torch.full_like(kept, share))
        error = (grid.nearest(weight).weight() - weight).reshape(-1, groups, group_size).transpose(0, 1)
        group_error = ((error @ blocks) * error).sum(dim=2).T
        if least is None:
            least = group_error
            continue
        better = group_error < least
        kept[better] = share
        least = torch.where(better, group_error, least)
    return _keep_where_it_helps(weight, gram, kept, group_size, symmetric=symmetric)


def _diagonal_blocks(gram: torch.Tensor, size: int) -> list[torch.Tensor]:
    return [gram[start : start + size, start : start + size] for start in range(0, gram.shape[0], size)]


def _keep_where_it_helps(
    weight: torch.Tensor, gram: torch.Tensor, kept: torch.Tensor, group_size: int, *, symmetric: bool
) -> torch.Tensor:
    clipped = fit(weight, group_size, symmetric=symmetric, kept=kept).nearest(weight).weight()
    whole = fit(weight, group_size, symmetric=symmetric).nearest(weight).weight()
    helps = row_errors(clipped - weight, gram) < row_errors(whole - weight, gram)
    return torch.where(helps.unsqueeze(1), kept, torch.ones_like(kept))
