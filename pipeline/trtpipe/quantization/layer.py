"""Quantize one decoder layer: statistics, scale search, folding, rounding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import PreTrainedConfig

from trtpipe.quantization import scales
from trtpipe.quantization.architectures import Architecture, ScaleGroup
from trtpipe.quantization.grid import Quantized, quantize
from trtpipe.quantization.statistics import InputStatistics


@dataclass(frozen=True)
class LinearError:
    """Relative squared output errors of the linears of one scale group, over the calibration tokens."""

    group: str
    alpha: float
    plain_rounding: float
    awq: float


@dataclass(frozen=True)
class QuantizedLayer:
    """``linears`` by name; ``others``: the layer's remaining tensors, with the folds applied; ``errors`` per group."""

    linears: dict[str, Quantized]
    others: dict[str, torch.Tensor]
    errors: list[LinearError]


def quantize_layer(
    layer: torch.nn.Module,
    architecture: Architecture,
    config: PreTrainedConfig,
    statistics: dict[str, InputStatistics],
    *,
    recipe: str,
    group_size: int,
    grid_points: int,
) -> QuantizedLayer:
    """Quantize the layer's linears and leave the layer computing with the quantized weights."""
    tensors = {name: tensor.float() for name, tensor in layer.state_dict().items()}
    errors = []
    found = {}
    for group in architecture.groups:
        seen = statistics[group.name]
        stacked = torch.cat([tensors[f"{name}.weight"] for name in group.linears])
        magnitude = seen.mean_magnitude
        if group.per_query_group:
            magnitude = scales.tied_magnitude(magnitude, config.num_attention_heads, config.num_key_value_heads)
        points = grid_points if recipe == "awq" else 0
        best = scales.search(stacked, seen, magnitude, group_size=group_size, grid_points=points)
        found[group.name] = best.scale
        errors.append(LinearError(group.name, best.alpha, best.error_rounding, best.error_scaled))
    for group in architecture.groups:
        fold(tensors, group, found[group.name], config)
    linears = {name: quantize(tensors.pop(f"{name}.weight"), group_size) for name in architecture.linears}
    weights = {f"{name}.weight": quantized.weight() for name, quantized in linears.items()}
    dtypes = {name: tensor.dtype for name, tensor in layer.state_dict().items()}
    others = {name: tensor.to(dtypes[name]) for name, tensor in tensors.items()}
    layer.load_state_dict(
        {**others, **{name: weight.to(dtypes[name]) for name, weight in weights.items()}}, assign=True
    )
    return QuantizedLayer(linears, others, errors)


def fold(tensors: dict[str, torch.Tensor], group: ScaleGroup, scale: torch.Tensor, config: PreTrainedConfig) -> None:
    """Multiply the group's input columns by the scale [in] and divide what produces that input by it."""
    for name in group.linears:
        tensors[f"{name}.weight"] *= scale
    if group.per_query_group:
        scale = scales.untied(scale, config.num_attention_heads, config.num_key_value_heads)
    rows = scale.unsqueeze(1) if group.absorber_kind == "linear" else scale
    tensors[f"{group.absorber}.weight"] /= rows
    if f"{group.absorber}.bias" in tensors:
        tensors[f"{group.absorber}.bias"] /= scale
