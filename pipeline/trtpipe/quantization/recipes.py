"""What each recipe does to a group of linears, and the rounding that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trtpipe.quantization import clipping, refit, rounding
from trtpipe.quantization.grid import Quantized, fit
from trtpipe.quantization.statistics import OutputEnergy


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
    """A rounded weight, and how it came about.

    ``error``: relative squared output error; ``clipped_share``: of the groups; ``damping`` of G, None without
    compensation.
    """

    quantized: Quantized
    error: float
    clipped_share: float
    damping: float | None


def round_weight(weight: torch.Tensor, gram: torch.Tensor, scheme: Scheme) -> Rounded:
    """Round a float32 weight [out, in] (scales folded in) for inputs with Gram matrix ``gram`` [in, in]."""
    size, symmetric = scheme.group_size, scheme.symmetric
    energy = OutputEnergy(gram)
    kept = clipping.search(weight, gram, energy, size, symmetric=symmetric) if scheme.recipe.clip else None
    grid = fit(weight, size, symmetric=symmetric, kept=kept)
    clipped_share = 0.0 if kept is None else float((kept < 1).float().mean())
    if scheme.recipe.compensate:
        quantized, damping = rounding.compensated(weight, gram, grid)
        quantized, errors = refit.refitted(weight, quantized, gram, energy)
    else:
        quantized, damping = grid.nearest(weight), None
        errors = energy.of_rows(quantized.weight() - weight)
    error = float(errors.sum() / energy.of_rows(weight).sum())
    return Rounded(quantized, error, clipped_share, damping)
