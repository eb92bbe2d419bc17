"""Quantize one decoder layer: search the scales, fold them, round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedConfig

from trtpipe.quantization import experts, scales
from trtpipe.quantization.architectures import ScaleGroup
from trtpipe.quantization.grid import Quantized, quantize
from trtpipe.quantization.recipes import Scheme, round_weight
from trtpipe.quantization.statistics import InputStatistics

# What a norm multiplies by, over its stored weight.
NORM_OFFSETS = {"norm": 0.0, "norm plus one": 1.0}
OUTLIER_TIMES = 10


@dataclass(frozen=True)
class LinearError:
    """Relative squared output errors of the linears of one scale group, over the calibration tokens they saw.

    ``plain_rounding``: without scales; ``awq``: with them; ``final``: what the recipe left of it. An expert that no
    token was routed to keeps plain rounding: ``tokens`` is 0 and the errors are None. ``outlier_channels``: how many
    inputs have over 10 times the median channel's mean magnitude; the ``largest_channel`` has ``largest_over_median``.
    ``dead_channels``: inputs that were 0 for every token, so that nothing but the weights decides their codes.
    """

    group: str
    tokens: int
    family: str = "none"
    alpha: float = 0.0
    plain_rounding: float | None = None
    awq: float | None = None
    final: float | None = None
    clipped_share: float = 0.0
    damping: float | None = None
    outlier_channels: int = 0
    dead_channels: int = 0
    largest_channel: int | None = None
    largest_over_median: float | None = None


@dataclass(frozen=True)
class QuantizedLayer:
    """``linears`` by name; ``others``: the layer's remaining tensors, with the folds applied; ``errors`` per group."""

    linears: dict[str, Quantized]
    others: dict[str, torch.Tensor]
    errors: list[LinearError]


def quantize_layer(
    layer: torch.nn.Module,
    groups: tuple[ScaleGroup, ...],
    config: PreTrainedConfig,
    statistics: Mapping[str, InputStatistics],
    scheme: Scheme,
    stored: torch.dtype,
) -> QuantizedLayer:
    """Quantize the layer's linears and leave the layer computing with what will be ``stored``."""
    dtype = next(layer.parameters()).dtype
    tensors = {name: tensor.to(torch.float32, copy=True) for name, tensor in experts.apart(layer.state_dict()).items()}
    found, errors = {}, []
    for group in groups:
        scale, error = search(tensors, group, config, statistics[group.name], scheme)
        found[group.name] = storable(tensors, group, scale, stored)
        errors.append(error)
    for group in groups:
        fold(tensors, group, found[group.name], config)
    linears: dict[str, Quantized] = {}
    for number, group in enumerate(groups):
        rounded, errors[number] = round_group(
            tensors, group, statistics[group.name], found[group.name], errors[number], scheme
        )
        linears |= rounded
    others = {name: tensor.to(stored) for name, tensor in tensors.items()}
    weights = {f"{name}.weight": quantized.weight() for name, quantized in linears.items()}
    state = {name: tensor.to(dtype) for name, tensor in {**others, **weights}.items()}
    layer.load_state_dict(experts.together(state), assign=True)
    return QuantizedLayer(linears, others, errors)


def search(
    tensors: Mapping[str, torch.Tensor],
    group: ScaleGroup,
    config: PreTrainedConfig,
    seen: InputStatistics,
    scheme: Scheme,
) -> tuple[torch.Tensor, LinearError]:
    """Return the group's scale [in] and the errors with and without it."""
    stacked = torch.cat([tensors[f"{name}.weight"] for name in group.linears])
    if not seen.tokens:
        return stacked.new_ones(stacked.shape[1]), LinearError(group.name, 0)
    best = scales.search(
        stacked,
        seen.gram,
        seen.mean_magnitude,
        partial(_tie, group, config),
        group_size=scheme.group_size,
        grid_points=scheme.alpha_grid_points if scheme.recipe.scales else 0,
        symmetric=scheme.symmetric,
    )
    error = LinearError(group.name, seen.tokens, best.family, best.alpha, best.error_rounding, best.error_scaled)
    return best.scale, replace(error, **outliers(seen.mean_magnitude))


def outliers(magnitude: torch.Tensor) -> dict[str, Any]:
    """Return what `LinearError` says of channels [in] that are much larger than most."""
    times = magnitude / magnitude.median().clamp_min(torch.finfo(magnitude.dtype).tiny)
    largest = int(times.argmax())
    return {
        "outlier_channels": int((times > OUTLIER_TIMES).sum()),
        "dead_channels": int((magnitude == 0).sum()),
        "largest_channel": largest,
        "largest_over_median": round(float(times[largest]), 2),
    }


def _tie(group: ScaleGroup, config: PreTrainedConfig, values: torch.Tensor) -> torch.Tensor:
    """Make values [in] equal wherever the group's scale has to be."""
    if not group.per_query_group:
        return values
    return scales.tied(values, config.num_attention_heads, config.num_key_value_heads)


def round_group(
    tensors: dict[str, torch.Tensor],
    group: ScaleGroup,
    seen: InputStatistics,
    scale: torch.Tensor,
    error: LinearError,
    scheme: Scheme,
) -> tuple[dict[str, Quantized], LinearError]:
    """Take the group's folded weights out of ``tensors`` and round them together: they share their input."""
    weights = {name: tensors.pop(f"{name}.weight") for name in group.linears}
    stacked = torch.cat(list(weights.values()))
    if seen.tokens:
        gram = seen.gram / scale.unsqueeze(1) / scale
        rounded = round_weight(stacked, gram, scheme)
        error = replace(error, final=rounded.error, clipped_share=rounded.clipped_share, damping=rounded.damping)
        quantized = rounded.quantized
    else:
        quantized = quantize(stacked, scheme.group_size, symmetric=scheme.symmetric)
    linears, start = {}, 0
    for name, weight in weights.items():
        linears[name] = quantized.rows(start, start + len(weight))
        start += len(weight)
    return linears, error


def storable(
    tensors: Mapping[str, torch.Tensor], group: ScaleGroup, scale: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return the scale nearest to ``scale`` [in] by which a norm can be divided exactly in the type it is stored in.

    Otherwise rounding the divided weight would change the layer: by half a percent in bfloat16, and by far more where
    one plus the weight is what counts and the weight comes near to -1. A channel whose weight would vanish keeps 1.
    """
    if group.absorber_kind == "linear":
        return scale
    offset = NORM_OFFSETS[group.absorber_kind]
    whole = tensors[f"{group.absorber}.weight"] + offset
    stored = (whole / scale - offset).to(dtype).to(whole.dtype) + offset
    return torch.where(whole * stored != 0, whole / stored, 1.0)


def fold(tensors: dict[str, torch.Tensor], group: ScaleGroup, scale: torch.Tensor, config: PreTrainedConfig) -> None:
    """Multiply what reads the group's input by the scale [in], column by column, and divide what makes it."""
    for name in (*group.linears, *group.scaled_too):
        tensors[f"{name}.weight"] *= scale
    if group.per_query_group:
        scale = scales.untied(scale, config.num_attention_heads, config.num_key_value_heads)
    weight = tensors[f"{group.absorber}.weight"]
    if group.absorber_kind == "linear":
        weight[-len(scale) :] /= scale.unsqueeze(1)
    else:
        offset = NORM_OFFSETS[group.absorber_kind]
        tensors[f"{group.absorber}.weight"] = (weight + offset) / scale - offset
    if f"{group.absorber}.bias" in tensors:
        tensors[f"{group.absorber}.bias"][-len(scale) :] /= scale
