"""What each recipe does to a group of linears, and the rounding that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trtpipe.quantization import clipping, refit, rounding
from trtpipe.quantization.grid import Quantized, fit


@dataclass(frozen=True)
class Recipe:
    """Which steps are taken: activation-aware scales, clipping, error-compensated rounding with scales refitted."""

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
class Scheme:
    """How weights become codes: the recipe, and the grid that it works on."""

    recipe: Recipe
    group_size: int
    alpha_grid_points: int
    symmetric: bool


@dataclass(frozen=True)
class Rounded:
    """A rounded weight; the share of groups that were clipped; the damping of G, None without compensation."""

    quantized: Quantized
    clipped_share: float
    damping: float | None


def round_weight(weight: torch.Tensor, gram: torch.Tensor, scheme: Scheme) -> Rounded:
    """Round a float32 weight [out, in] (scales folded in) for inputs with Gram matrix ``gram`` [in, in]."""
    size, symmetric = scheme.group_size, scheme.symmetric
    kept = clipping.search(weight, gram, size, symmetric=symmetric) if scheme.recipe.clip else None
    grid = fit(weight, size, symmetric=symmetric, kept=kept)
    clipped_share = 0.0 if kept is None else float((kept < 1).float().mean())
    if not scheme.recipe.compensate:
        return Rounded(grid.nearest(weight), clipped_share, None)
    quantized, damping = rounding.compensated(weight, gram, grid)
    return Rounded(refit.refitted(weight, quantized, gram), clipped_share, damping)
