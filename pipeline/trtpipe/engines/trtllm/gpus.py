"""GPU types: compute capability and memory.

Capability: developer.nvidia.com/cuda-gpus. Memory: what NVML reports, by the table of
thundergolfer.com/blog/nvidia-gpu-memory-capacity; of A100 PCIe the product's size, not read from a card.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from trtpipe.errors import ConfigError


@dataclass(frozen=True)
class Gpu:
    """``sm``: compute capability times ten; ``memory_mib``: of one GPU, before any process uses it."""

    name: str
    sm: int
    memory_mib: int


GPUS = (
    Gpu("a100-40gb", 80, 40_960),
    Gpu("a100-80gb", 80, 81_920),
    Gpu("a10", 86, 23_028),
    Gpu("l4", 89, 23_034),
    Gpu("l40s", 89, 46_068),
    Gpu("h100", 90, 81_559),
    Gpu("h200", 90, 143_771),
)


def gpu_of(name: str, where: str) -> Gpu:
    """Return a GPU type. Raises ConfigError listing the known ones; ``where`` is for the message."""
    for gpu in GPUS:
        if gpu.name == name:
            return gpu
    names = [gpu.name for gpu in GPUS]
    near = difflib.get_close_matches(name, names, n=1)
    raise ConfigError(
        f"there is no GPU type `{name}`",
        where=where,
        fix=f"did you mean `{near[0]}`?" if near else f"known: {', '.join(names)}; another needs a row in gpus.py",
    )
