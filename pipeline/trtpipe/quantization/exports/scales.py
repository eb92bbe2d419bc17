"""Whether scales stored as bfloat16 survive in float16, which some layouts and engines demand."""

from __future__ import annotations

import torch

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.checkpoint import Checkpoint


def float16_scales(scales: torch.Tensor, name: str) -> tuple[torch.Tensor, int]:
    """Return scales as float16 and how many of them were rounded. Raises ConfigError where one overflows."""
    made = scales.to(torch.float16)
    if not torch.isfinite(made).all():
        raise ConfigError(f"scales of `{name}` are beyond float16", where=name, fix="use a layout with bfloat16 scales")
    return made, int((made.float() != scales.float()).sum())


def float16_note(checkpoint: Checkpoint) -> list[str]:
    """Return a note on the scales that an engine in float16 will round, if there are any."""
    suffix = ".weight_scale"
    counts = [float16_scales(checkpoint.tensor(name), name)[1] for name in checkpoint.names() if name.endswith(suffix)]
    if not any(counts):
        return []
    return [
        f"{sum(counts)} scale(s) are too small for float16 and were rounded: weights differ there from other exports"
    ]
