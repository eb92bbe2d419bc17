"""What each recipe does to a group of linears, and the rounding that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trtpipe.quantization import clipping, rounding
from trtpipe.quantization.grid import Quantized, fit


@dataclass(frozen=True)
class Recipe:
    """Which steps are taken: activation-aware scales, clipping, error-compensated rounding."""

    scales: bool
    clip: bool
    compensate: bool


RECIPES = {
    "rtn": Recipe(scales=False, clip=False, compensate=False),
    "awq": Recipe(scales=True, clip=False, compensate=False),
    "awq+clip": Recipe(scales=True, clip=True, compensate=False),
    "awq+clip+round": Recipe(scales=True, clip=True, compensate=True),
}


@dataclass(frozen=True)
class Rounded:
    """A rounded weight; the share of groups that were clipped; the damping of G, None without compensation."""

    quantized: Quantized
    clipped_share: float
    damping: float | None


def round_weight(
    weight: torch.Tensor, gram: torch.Tensor, recipe: Recipe, group_size: int, *, symmetric: bool = True
) -> Rounded:
    """Round a float32 weight [out, in] (scales folded in) for inputs with Gram matrix ``gram`` [in, in]."""
    kept = clipping.search(weight, gram, group_size, symmetric=symmetric) if recipe.clip else None
    grid = fit(weight, group_size, symmetric=symmetric, kept=kept)
    clipped_share = 0.0 if kept is None else float((kept < 1).float().mean())
    if not recipe.compensate:
        return Rounded(grid.nearest(weight), clipped_share, None)
    quantized, damping = rounding.compensated(weight, gram, grid)
    return Rounded(quantized, clipped_share, damping)
