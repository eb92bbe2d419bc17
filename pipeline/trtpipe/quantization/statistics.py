"""Statistics of a linear's input over all calibration tokens: the Gram matrix and the mean magnitude.

How float32 accumulation is had, by device:

- CPU, bfloat16 activations: a bfloat16 product comes back rounded to bfloat16, so the product is a float32 one whose
  inputs oneDNN may round to bfloat16, which changes nothing where they were bfloat16 before: the matrix units then
  multiply and accumulate in float32 (the relative error of G was 5e-7 either way, at 2.3 times the speed).
- CPU, float32 activations: a float32 product.
- GPU: a bfloat16 product with a float32 result, which its units accumulate in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.distributed import all_reduce, is_initialized


@contextmanager
def rounded_inputs(*, allowed: bool) -> Iterator[None]:
    """Let a CPU's float32 products round their inputs to bfloat16, or forbid it."""
    settings = torch.backends.mkldnn.matmul  # type: ignore[attr-defined] # made at run time
    before = settings.fp32_precision
    settings.fp32_precision = "bf16" if allowed else "ieee"
    try:
        yield
    finally:
        settings.fp32_precision = before


class InputStatistics:
    """G = XᵀX [in, in] and the sum of |x| [in], both float32, accumulated batch by batch."""

    def __init__(self, width: int, device: torch.device) -> None:
        # One buffer, so that ranks sum it in one step: G, then the sum of |x|, then the tokens.
        self._sums = torch.zeros(width * width + width + 1, device=device)
        self.gram = self._sums[: width * width].view(width, width)
        self.magnitude_sum = self._sums[width * width : -1]
        self.tokens = 0

    def add(self, inputs: torch.Tensor) -> None:
        """Add activations of shape [tokens, in]."""
        x = inputs.detach()
        if x.is_cuda and x.dtype == torch.bfloat16:
            torch.addmm(self.gram, x.T, x, out_dtype=torch.float32, out=self.gram)
        else:
            with rounded_inputs(allowed=x.dtype == torch.bfloat16):
                wide = x.float()
                self.gram.addmm_(wide.T, wide)
        self.magnitude_sum += x.abs().sum(dim=0, dtype=torch.float32)
        self.tokens += x.shape[0]

    def sum_over_ranks(self) -> None:
        """Make this the statistics of all ranks' tokens: one all-reduce."""
        if is_initialized():
            self._sums[-1] = self.tokens
            all_reduce(self._sums)
            self.tokens = round(float(self._sums[-1]))

    @property
    def mean_magnitude(self) -> torch.Tensor:
        return self.magnitude_sum / self.tokens


def row_errors(error: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
    """Return e G eᵀ for each row e of a float32 matrix [out, in]: its squared output over all tokens."""
    return (through(error, gram) * error).sum(dim=1)


def through(error: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
    """Return E G in float32; a GPU rounds its inputs to bfloat16, which is all that comparing errors needs."""
    if not error.is_cuda:
        return error @ gram
    return torch.mm(error.bfloat16(), gram.bfloat16(), out_dtype=torch.float32)


def diagonal_blocks(gram: torch.Tensor, size: int) -> torch.Tensor:
    """Return the blocks [groups, size, size] on G's diagonal."""
    return torch.stack([gram[start : start + size, start : start + size] for start in range(0, len(gram), size)])
