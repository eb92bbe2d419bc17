"""A mixture's experts, which transformers keep as two fused tensors: taken apart, put together, and watched.

Fused: ``gate_up_proj`` [experts, 2 x intermediate, hidden] (gate rows first) and ``down_proj``
[experts, hidden, intermediate]. Apart: one linear per expert and projection, named as in checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from trtpipe.quantization.architectures import EXPERTS

IMPLEMENTATION = "trtpipe_watched"
ATTRIBUTE = "trtpipe_watch"
GATE_UP, DOWN = f"{EXPERTS}.gate_up_proj", f"{EXPERTS}.down_proj"


def apart(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a layer's tensors with each expert's projections by themselves, as views of the fused ones."""
    made = {name: tensor for name, tensor in tensors.items() if name not in {GATE_UP, DOWN}}
    if GATE_UP in tensors:
        for expert, (gate_up, down) in enumerate(zip(tensors[GATE_UP], tensors[DOWN], strict=True)):
            gate, up = gate_up.chunk(2)
            projections = {"gate_proj": gate, "up_proj": up, "down_proj": down}
            made |= {f"{EXPERTS}.{expert}.{name}.weight": tensor for name, tensor in projections.items()}
    return made


def together(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a layer's tensors as the module has them: the inverse of ``apart``."""
    made = {name: tensor for name, tensor in tensors.items() if not name.startswith(f"{EXPERTS}.")}
    if len(made) < len(tensors):
        gate, up, down = (
            torch.stack([tensors[f"{EXPERTS}.{expert}.{name}.weight"] for expert in range(_count(tensors))])
            for name in ("gate_proj", "up_proj", "down_proj")
        )
        made |= {GATE_UP: torch.cat([gate, up], dim=1), DOWN: down}
    return made


def _count(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(name.startswith(f"{EXPERTS}.") and name.endswith(".down_proj.weight") for name in tensors)


def _forward(module: Any, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Run tokens [tokens, hidden] through their ``chosen`` experts [tokens, k]; ``weights`` [tokens, k].

    Each expert that got tokens tells the watcher its number, its down projection's inputs, and which tokens they are.
    """
    watch = getattr(module, ATTRIBUTE, None)
    output = torch.zeros_like(hidden)
    for expert in chosen.unique().tolist():
        tokens, places = torch.where(chosen == expert)
        gate, up = torch.nn.functional.linear(hidden[tokens], module.gate_up_proj[expert]).chunk(2, dim=-1)
        inner = module.act_fn(gate) * up
        if watch is not None:
            watch(expert, inner, tokens)
        made = torch.nn.functional.linear(inner, module.down_proj[expert]) * weights[tokens, places].unsqueeze(1)
        output.index_add_(0, tokens, made.to(output.dtype))
    return output


def register() -> None:
    """Make the watched experts known to transformers under ``IMPLEMENTATION``."""
    ALL_EXPERTS_FUNCTIONS.register(IMPLEMENTATION, _forward)
