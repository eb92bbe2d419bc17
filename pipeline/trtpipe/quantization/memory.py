"""How much memory quantizing takes, held against what is free before a weight is loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from trtpipe.core import environment
from trtpipe.errors import EnvironmentUnfit
from trtpipe.quantization.architectures import ScaleGroup
from trtpipe.quantization.device import Compute
from trtpipe.quantization.forward import TOKENS_PER_BATCH
from trtpipe.quantization.statistics import BLOCK_ROWS

GIB = 2**30
# Copies of a group's float32 weights while it is rounded: stacked, transposed, as targets, and codes of one byte.
ROUNDING_BYTES = 4 + 4 + 4 + 1
# float32 matrices as large as G at once: G, scaled, what is factorised, the factor, the factor turned round.
GRAM_COPIES = 5
# Python, torch and transformers themselves.
PROCESS_BYTES = 700 << 20


@dataclass(frozen=True)
class Need:
    """Bytes at the peak, by what takes them.

    ``activations`` grow with the calibration tokens, the rest does not; they alone can do without memory.
    """

    layer: int
    statistics: int
    batch: int
    process: int
    activations: int

    @property
    def least(self) -> int:
        return self.layer + self.statistics + self.batch + self.process

    @property
    def total(self) -> int:
        return self.least + self.activations

    def __str__(self) -> str:
        parts = {
            "one layer": self.layer,
            "its statistics": self.statistics,
            "a batch": self.batch,
            "activations": self.activations,
        }
        return ", ".join(f"{name} {size / GIB:.1f}" for name, size in parts.items())


def need(
    shapes: Mapping[str, Sequence[int]], groups: Sequence[ScaleGroup], hidden: int, tokens: int, compute: Compute
) -> Need:
    """Estimate the peak. ``shapes`` of a layer's tensors by name; ``hidden``: width of what goes between layers.

    The layer is there in the type it is computed in and in float32; of each group half of G and a bit; and of the
    group being rounded, copies of G and of its weights. A test holds this against what was measured.
    """
    size = compute.dtype.itemsize
    elements = {name: math.prod(shape) for name, shape in shapes.items()}
    widths = {group.name: shapes[f"{group.linears[0]}.weight"][1] for group in groups}
    weights = {group.name: sum(elements[f"{name}.weight"] for name in group.linears) for group in groups}
    kept = sum(4 * width**2 * (BLOCK_ROWS + 1) // (2 * BLOCK_ROWS) for width in widths.values())
    rounding = max(ROUNDING_BYTES * weights[name] + GRAM_COPIES * 4 * width**2 for name, width in widths.items())
    return Need(
        layer=sum(elements.values()) * (size + 4),
        statistics=kept + rounding,
        batch=size * 3 * max(widths.values()) * min(tokens, TOKENS_PER_BATCH[compute.device.type]),
        process=PROCESS_BYTES if compute.device.type == "cpu" else 0,
        activations=size * 2 * tokens * hidden,
    )


def require(found: Need, free: int, compute: Compute, *, sharers: int = 1) -> str:
    """Return need and free memory in words. ``sharers``: processes that ``free`` is for.

    Raises EnvironmentUnfit where not even one layer fits.
    """
    kind, each = ("RAM" if compute.device.type == "cpu" else "GPU memory"), free // sharers
    text = f"about {found.total / GIB:.1f} GiB of {kind} needed ({found}), {each / GIB:.1f} GiB free"
    if sharers > 1:
        text += f" for each of {sharers} processes"
    if found.least > each:
        others = ", or fewer quantization.processes" if sharers > 1 else ""
        raise EnvironmentUnfit(
            f"quantizing would run out of {kind}: {text}",
            where="the largest decoder layer",
            fix=f"a machine with {found.least * sharers / GIB:.1f} GiB of free {kind}{others}; fewer calibration "
            "tokens change nothing",
        )
    return text if found.total <= each else f"{text}: activations are read from disk for each layer, which is slower"


def free_bytes(compute: Compute) -> int:
    """Return the memory that a process could still take without swapping."""
    if compute.device.type != "cpu":
        return int(torch.cuda.mem_get_info(compute.device)[0])
    return environment.free_memory_bytes()
