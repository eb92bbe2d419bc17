"""Where layers are computed, and in which type."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# What unquantized tensors and scales are stored in; every engine here reads it.
STORED = torch.bfloat16


@dataclass(frozen=True)
class Compute:
    """``dtype``: of activations and of the weights they meet. ``reason``: for the record."""

    device: torch.device
    dtype: torch.dtype
    reason: str

    def __str__(self) -> str:
        return f"{self.device} in {str(self.dtype).removeprefix('torch.')}: {self.reason}"


def choose() -> Compute:
    """Return the first GPU in bfloat16; else the CPU, in float32 where it has no units for bfloat16."""
    if torch.cuda.is_available():
        # Products of float32 weights and G: the search compares sums of millions of them.
        torch.backends.cuda.matmul.allow_tf32 = True
        return Compute(torch.device("cuda", torch.cuda.current_device()), torch.bfloat16, torch.cuda.get_device_name())
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return Compute(torch.device("cpu"), torch.bfloat16, "the CPU has AVX-512")
    return Compute(torch.device("cpu"), torch.float32, "the CPU has no AVX-512: its bfloat16 products are slower")
