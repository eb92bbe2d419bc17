"""Search the activation-aware scale of a group of linears, scored by statistics alone.

Weights are multiplied by s per input channel before rounding and the inputs divided by s, which makes the
rounding error of channels with large activations smaller (AWQ, Lin et al. 2023). For a rounding error E of the
weight, the output error over all calibration tokens is tr(E G Eᵀ), so a candidate costs no pass over tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from trtpipe.quantization.grid import grouped, rounding_error
from trtpipe.quantization.statistics import OutputEnergy

FLOOR = 1e-4
REFINEMENTS = 2
# The search compares candidates on evenly spaced rows; what wins is scored on all of them. With 64 rows or with all of
# them the model ends equally close (benchmarks/results/quality-rows-searched.json), and 256 cost next to nothing.
ROWS_SEARCHED = 256
# Bounds what is in memory beside the weight itself.
ROWS_AT_ONCE = 8192

Candidate = tuple[str, float]  # a family's name, alpha


@dataclass(frozen=True)
class Found:
    """The best scale [in] and where it came from, with the relative output errors of plain rounding and of it."""

    scale: torch.Tensor
    family: str
    alpha: float
    error_rounding: float
    error_scaled: float


def search(
    weight: torch.Tensor,
    gram: torch.Tensor,
    magnitude: torch.Tensor,
    tie: Callable[[torch.Tensor], torch.Tensor],
    *,
    group_size: int,
    grid_points: int,
    symmetric: bool,
) -> Found:
    """Search alpha between 0 and 1 for a float32 weight [out, in]: all linears of the group stacked.

    ``magnitude`` [in] is the mean |x| and ``gram`` [in, in] XᵀX. ``tie`` averages over channels that must share
    their scale. ``grid_points`` evenly spaced values of each family come first, then twice the middle between the best
    and its neighbours. With no grid points nothing is searched: plain rounding.
    """
    energy = OutputEnergy(gram)
    whole = float(energy.of_rows(weight).sum())

    def error(scale: torch.Tensor) -> float:
        return float(output_error(weight, scale, energy, group_size, symmetric=symmetric)) / whole

    def sampled_errors(candidates: list[Candidate]) -> dict[Candidate, float]:
        parts = [
            output_error(sample, families[family](alpha), energy, group_size, symmetric=symmetric)
            for family, alpha in candidates
        ]
        return dict(zip(candidates, torch.stack(parts).tolist(), strict=True))  # a GPU is waited for once

    none = torch.ones_like(magnitude)
    plain = error(none)
    if not grid_points:
        return Found(none, "none", 0.0, plain, plain)
    sample = weight[:: -(-len(weight) // ROWS_SEARCHED)].contiguous()
    families = _families(weight, tie(magnitude), tie, group_size)
    errors = sampled_errors([(name, point / grid_points) for name in families for point in range(grid_points + 1)])
    family, alpha = min(errors, key=errors.__getitem__)
    for refinement in range(1, REFINEMENTS + 1):
        step = 1 / grid_points / 2**refinement
        errors |= sampled_errors([(family, near) for near in (alpha - step, alpha + step) if 0 <= near <= 1])
        family, alpha = min(errors, key=errors.__getitem__)
    scale = families[family](alpha)
    scaled = error(scale)
    return Found(scale, family, alpha, plain, scaled) if scaled < plain else Found(none, "none", 0.0, plain, plain)


def _families(
    weight: torch.Tensor, magnitude: torch.Tensor, tie: Callable[[torch.Tensor], torch.Tensor], group_size: int
) -> dict[str, Callable[[float], torch.Tensor]]:
    """Return what makes the scale of an alpha, in AWQ's paper and in its code, which heeds the weights' magnitude."""
    share = grouped(weight.abs(), group_size)
    share = share / share.amax(dim=2, keepdim=True).clamp_min(torch.finfo(weight.dtype).tiny)
    own = tie(share.flatten(1).mean(dim=0)).clamp_min(FLOOR)
    return {
        "activations": lambda alpha: balanced(magnitude, alpha),
        "activations and weights": lambda alpha: balanced(magnitude, alpha, own.pow(alpha - 1)),
    }


def balanced(magnitude: torch.Tensor, alpha: float, factor: torch.Tensor | float = 1.0) -> torch.Tensor:
    """Return s = magnitude^alpha * factor, normalised so that its largest and smallest entry are reciprocal."""
    scale = magnitude.clamp_min(FLOOR).pow(alpha) * factor
    return scale / (scale.max() * scale.min()).sqrt()


def output_error(
    weight: torch.Tensor, scale: torch.Tensor, energy: OutputEnergy, group_size: int, *, symmetric: bool
) -> torch.Tensor:
    """Return tr(E G Eᵀ) [] of rounding ``weight`` [out, in] under the scale [in]."""
    parts = [
        energy.of_rows(rounding_error(rows, group_size, symmetric=symmetric, scale=scale)).sum()
        for rows in weight.split(ROWS_AT_ONCE)
    ]
    return torch.stack(parts).sum()


def tied(values: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Average values [query_heads * head_dim] over the query heads that read the same KV head.

    Their common scale can then be folded into that head's rows of the value projection.
    """
    per_head = values.reshape(kv_heads, query_heads // kv_heads, -1)
    return per_head.mean(dim=1, keepdim=True).expand_as(per_head).flatten()


def untied(scale: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Return one scale per row of the value projection [kv_heads * head_dim] from a tied scale."""
    return scale.reshape(kv_heads, query_heads // kv_heads, -1)[:, 0].flatten()
