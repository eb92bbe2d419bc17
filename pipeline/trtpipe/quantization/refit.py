"""Fit the scales of rounded weights once more, now that the codes are fixed: least squares under G.

For a row w with codes c, the scales s of its groups that make (w - s·c) G (w - s·c)ᵀ least solve A s = b with
A_gh = c_g G_gh c_hᵀ and b_g = (w G)_g c_gᵀ. A is never formed: conjugate gradients, all rows at once, need one
product with G a step, and begin at the scales that are there.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from trtpipe.quantization.grid import Quantized, grouped
from trtpipe.quantization.statistics import OutputEnergy, diagonal_blocks

STEPS = 2
ROWS_AT_ONCE = 8192


def refitted(
    weight: torch.Tensor, quantized: Quantized, gram: torch.Tensor, energy: OutputEnergy
) -> tuple[Quantized, torch.Tensor]:
    """Return the codes with better scales, and each row's squared output error; none gets worse.

    ``weight``: the float32 original [out, in]; ``gram`` [in, in]: XᵀX of its inputs; ``energy``: that of ``gram``.
    """
    blocks = diagonal_blocks(gram, quantized.group_size)
    parts = [
        _refitted(weight[start : start + ROWS_AT_ONCE], quantized.rows(start, start + ROWS_AT_ONCE), blocks, energy)
        for start in range(0, len(weight), ROWS_AT_ONCE)
    ]
    scales, errors = (torch.cat(part) for part in zip(*parts, strict=True))
    return replace(quantized, scales=scales), errors


def _refitted(
    weight: torch.Tensor, quantized: Quantized, blocks: torch.Tensor, energy: OutputEnergy
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scales [rows, groups] and the errors [rows]. ``blocks`` [groups, size, size]: G's diagonal."""
    size = quantized.group_size
    codes = grouped(replace(quantized, scales=torch.ones_like(quantized.scales)).weight(), size)
    tiny = torch.finfo(blocks.dtype).tiny
    diagonal = ((codes.transpose(0, 1) @ blocks).transpose(0, 1) * codes).sum(dim=2).clamp_min(tiny)

    def by_group(product: torch.Tensor) -> torch.Tensor:
        return (grouped(product, size) * codes).sum(dim=2)

    def expanded(values: torch.Tensor) -> torch.Tensor:
        return (codes * values.unsqueeze(2)).flatten(1)

    scales = quantized.scales.float()
    error = weight - expanded(scales)
    product = energy.through(error)
    error_before, residual = (product * error).sum(dim=1), by_group(product)
    direction = residual / diagonal
    descent = (residual * direction).sum(dim=1, keepdim=True)
    for _ in range(STEPS):
        reached = by_group(energy.through(expanded(direction)))
        step = descent / (direction * reached).sum(dim=1, keepdim=True).clamp_min(tiny)
        scales = scales + step * direction
        residual = residual - step * reached
        before, descent = descent, (residual * residual / diagonal).sum(dim=1, keepdim=True)
        direction = residual / diagonal + descent / before.clamp_min(tiny) * direction
    better = replace(quantized, scales=scales.to(quantized.scales.dtype))
    sound = (torch.isfinite(better.scales) & (better.scales > 0)).all(dim=1)
    error_after = energy.of_rows(better.weight() - weight)
    falls = sound & (error_after < error_before)
    scales = torch.where(falls.unsqueeze(1), better.scales, quantized.scales)
    return scales, torch.where(falls, error_after, error_before)
