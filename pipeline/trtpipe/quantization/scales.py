"""Search the activation-aware scale of a group of linears, scored by statistics alone.

Weights are multiplied by s per input channel before rounding and the inputs divided by s, which makes the
rounding error of channels with large activations smaller (AWQ, Lin et al. 2023). For a rounding error E of the
weight, the output error over all calibration tokens is tr(E G Eᵀ), so a candidate costs no pass over tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trtpipe.quantization.grid import quantize
from trtpipe.quantization.statistics import InputStatistics

MAGNITUDE_FLOOR = 1e-4
REFINEMENTS = 2


@dataclass(frozen=True)
class Found:
    """The best scale [in] with its alpha, and the relative output errors of plain rounding and of this scale."""

    scale: torch.Tensor
    alpha: float
    error_rounding: float
    error_scaled: float


def search(
    weight: torch.Tensor,
    statistics: InputStatistics,
    magnitude: torch.Tensor,
    *,
    group_size: int,
    grid_points: int,
) -> Found:
    """Search alpha between 0 and 1 for a float32 weight [out, in]: all linears of the group stacked.

    ``grid_points`` evenly spaced values first, then twice the middle between the best and its neighbours.
    ``magnitude`` [in] is the mean |x|, already averaged over channels that must share their scale. With no grid
    points only alpha = 0 is tried: plain rounding.
    """
    energy = statistics.output_energy(weight)

    def error(alpha: float) -> float:
        return output_error(weight, candidate(magnitude, alpha), statistics, group_size) / energy

    errors = {alpha: error(alpha) for alpha in (0.0, *(point / grid_points for point in range(1, grid_points + 1)))}
    best = min(errors, key=errors.__getitem__)
    for refinement in range(1, REFINEMENTS + 1 if grid_points else 1):
        step = 1 / grid_points / 2**refinement
        errors |= {alpha: error(alpha) for alpha in (best - step, best + step) if 0 <= alpha <= 1}
        best = min(errors, key=errors.__getitem__)
    return Found(candidate(magnitude, best), best, errors[0.0], errors[best])


def candidate(magnitude: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return s = magnitude^alpha, normalised so that its largest and smallest entry are reciprocal."""
    scale = magnitude.clamp_min(MAGNITUDE_FLOOR).pow(alpha)
    return scale / (scale.max() * scale.min()).sqrt()


def output_error(weight: torch.Tensor, scale: torch.Tensor, statistics: InputStatistics, group_size: int) -> float:
    """Return tr(E G Eᵀ) of rounding ``weight`` [out, in] under the scale [in]."""
    rounded = quantize(weight * scale, group_size).weight() / scale
    return statistics.output_energy(rounded - weight)


def tied_magnitude(magnitude: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Average the magnitude [query_heads * head_dim] over the query heads that read the same KV head.

    Their common scale can then be folded into that head's rows of the value projection.
    """
    per_head = magnitude.reshape(kv_heads, query_heads // kv_heads, -1)
    return per_head.mean(dim=1, keepdim=True).expand_as(per_head).flatten()


def untied(scale: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Return one scale per row of the value projection [kv_heads * head_dim] from a tied scale."""
    return scale.reshape(kv_heads, query_heads // kv_heads, -1)[:, 0].flatten()
