"""Fit the scales of rounded weights once more, now that the codes are fixed: least squares under G.

For a row w with codes c, the scales s of its groups that make (w - s·c) G (w - s·c)ᵀ least solve A s = b with
A_gh = c_g G_gh c_hᵀ and b_g = (w G)_g c_gᵀ. A is never formed: conjugate gradients, all rows at once, need one
product with G a step, and begin at the scales that are there.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from trtpipe.quantization.grid import Quantized, grouped
from trtpipe.quantization.statistics import diagonal_blocks, row_errors, through

STEPS = 2
ROWS_AT_ONCE = 8192


def refitted(weight: torch.Tensor, quantized: Quantized, gram: torch.Tensor) -> Quantized:
    """Return the codes with better scales; a row whose error would not fall keeps its own.

    ``weight``: the float32 original [out, in]; ``gram`` [in, in]: XᵀX of its inputs.
    """
    parts = [
        _refitted(weight[start : start + ROWS_AT_ONCE], quantized.rows(start, start + ROWS_AT_ONCE), gram)
        for start in range(0, len(weight), ROWS_AT_ONCE)
    ]
    return replace(quantized, scales=torch.cat(parts))


def _refitted(weight: torch.Tensor, quantized: Quantized, gram: torch.Tensor) -> torch.Tensor:
    """Return the scales [rows, groups]."""
    size = quantized.group_size
    codes = grouped(replace(quantized, scales=torch.ones_like(quantized.scales)).weight(), size)
    blocks = diagonal_blocks(gram, size)
    tiny = torch.finfo(gram.dtype).tiny
    diagonal = ((codes.transpose(0, 1) @ blocks).transpose(0, 1) * codes).sum(dim=2).clamp_min(tiny)

    def by_group(product: torch.Tensor) -> torch.Tensor:
        return (grouped(product, size) * codes).sum(dim=2)

    def expanded(values: torch.Tensor) -> torch.Tensor:
        return (codes * values.unsqueeze(2)).flatten(1)

    scales = quantized.scales.float()
    error = weight - expanded(scales)
    product = through(error, gram)
    error_before, residual = (product * error).sum(dim=1), by_group(product)
    direction = residual / diagonal
    descent = (residual * direction).sum(dim=1, keepdim=True)
    for _ in range(STEPS):
        reached = by_group(through(expanded(direction), gram))
        step = descent / (direction * reached).sum(dim=1, keepdim=True).clamp_min(tiny)
        scales = scales + step * direction
        residual = residual - step * reached
        before, descent = descent, (residual * residual / diagonal).sum(dim=1, keepdim=True)
        direction = residual / diagonal + descent / before.clamp_min(tiny) * direction
    better = replace(quantized, scales=scales.to(quantized.scales.dtype))
    sound = (torch.isfinite(better.scales) & (better.scales > 0)).all(dim=1)
    falls = row_errors(better.weight() - weight, gram) < error_before
    return torch.where((sound & falls).unsqueeze(1), better.scales, quantized.scales)
