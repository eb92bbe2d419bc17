"""Search the activation-aware scale of a group of linears, scored by statistics alone.

Weights are multiplied by s per input channel before rounding and the inputs divided by s, which makes the
rounding error of channels with large activations smaller (AWQ, Lin et al. 2023). For a rounding error E of the
weight, the output error over all calibration tokens is tr(E G Eᵀ), so a candidate costs no pass over tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from trtpipe.quantization.grid import grouped, quantize
from trtpipe.quantization.statistics import row_errors

FLOOR = 1e-4
REFINEMENTS = 2
# The search compares candidates on evenly spaced rows; what wins is scored on all of them.
ROWS_SEARCHED = 512
# Bounds what is in memory beside the weight itself.
ROWS_AT_ONCE = 8192

Candidate = Callable[[float], torch.Tensor]


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
    their scale. In each family ``grid_points`` evenly spaced values come first, then twice the middle between the
    best and its neighbours. With no grid points nothing is searched: plain rounding.
    """
    energy = float(row_errors(weight, gram).sum())

    def error(scale: torch.Tensor) -> float:
        return output_error(weight, scale, gram, group_size, symmetric=symmetric) / energy

    def sampled_error(candidate: Candidate, alpha: float) -> float:
        return output_error(sample, candidate(alpha), gram, group_size, symmetric=symmetric)

    none = torch.ones_like(magnitude)
    plain = error(none)
    if not grid_points:
        return Found(none, "none", 0.0, plain, plain)
    sample = weight[:: -(-len(weight) // ROWS_SEARCHED)]
    families = _families(weight, tie(magnitude), tie, group_size)
    best = {family: _best(partial(sampled_error, candidate), grid_points) for family, candidate in families.items()}
    family, (alpha, _) = min(best.items(), key=lambda item: item[1][1])
    scale = families[family](alpha)
    scaled = error(scale)
    return Found(scale, family, alpha, plain, scaled) if scaled < plain else Found(none, "none", 0.0, plain, plain)


def _families(
    weight: torch.Tensor, magnitude: torch.Tensor, tie: Callable[[torch.Tensor], torch.Tensor], group_size: int
) -> dict[str, Candidate]:
    """Return the candidates of AWQ's paper, and those of its code, which divide by the weights' own magnitude."""
    share = grouped(weight.abs(), group_size)
    share = share / share.amax(dim=2, keepdim=True).clamp_min(torch.finfo(weight.dtype).tiny)
    own = tie(share.flatten(1).mean(dim=0)).clamp_min(FLOOR)
    return {
        "activations": lambda alpha: balanced(magnitude, alpha),
        "activations and weights": lambda alpha: balanced(magnitude, alpha, own.pow(alpha - 1)),
    }


def _best(error: Callable[[float], float], grid_points: int) -> tuple[float, float]:
    """Return the alpha of the smallest error, and that error."""
    errors = {alpha: error(alpha) for alpha in (point / grid_points for point in range(grid_points + 1))}
    best = min(errors, key=errors.__getitem__)
    for refinement in range(1, REFINEMENTS + 1):
        step = 1 / grid_points / 2**refinement
        errors |= {alpha: error(alpha) for alpha in (best - step, best + step) if 0 <= alpha <= 1}
        best = min(errors, key=errors.__getitem__)
    return best, errors[best]


def balanced(magnitude: torch.Tensor, alpha: float, factor: torch.Tensor | float = 1.0) -> torch.Tensor:
    """Return s = magnitude^alpha * factor, normalised so that its largest and smallest entry are reciprocal."""
    scale = magnitude.clamp_min(FLOOR).pow(alpha) * factor
    return scale / (scale.max() * scale.min()).sqrt()


def output_error(
    weight: torch.Tensor, scale: torch.Tensor, gram: torch.Tensor, group_size: int, *, symmetric: bool
) -> float:
    """Return tr(E G Eᵀ) of rounding ``weight`` [out, in] under the scale [in]."""
    total = gram.new_zeros(())
    for rows in weight.split(ROWS_AT_ONCE):
        rounded = quantize(rows * scale, group_size, symmetric=symmetric).weight() / scale
        total += row_errors(rounded - rows, gram).sum()
    return float(total)


def tied(values: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Average values [query_heads * head_dim] over the query heads that read the same KV head.

    Their common scale can then be folded into that head's rows of the value projection.
    """
    per_head = values.reshape(kv_heads, query_heads // kv_heads, -1)
    return per_head.mean(dim=1, keepdim=True).expand_as(per_head).flatten()


def untied(scale: torch.Tensor, query_heads: int, kv_heads: int) -> torch.Tensor:
    """Return one scale per row of the value projection [kv_heads * head_dim] from a tied scale."""
    return scale.reshape(kv_heads, query_heads // kv_heads, -1)[:, 0].flatten()
