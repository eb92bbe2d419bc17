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

# G is symmetric: its upper triangle is computed in this many rows of blocks, which is 10 of 16 blocks.
BLOCK_ROWS = 4


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
    """G = XᵀX and the sum of |x| [in], both float32, accumulated batch by batch."""

    def __init__(self, width: int, device: torch.device) -> None:
        step = -(-width // BLOCK_ROWS)
        lengths = {start: (min(step, width - start), width - start) for start in range(0, width, step)}
        sizes = [height * length for height, length in lengths.values()]
        # One buffer, so that ranks sum it in one step: G's rows of blocks, then the sum of |x|, then the tokens.
        self._sums = torch.zeros(sum(sizes) + width + 1, device=device)
        rows = self._sums.split([*sizes, width, 1])
        self.magnitude_sum: torch.Tensor = rows[-2]
        self._rows = {start: row.view(lengths[start]) for start, row in zip(lengths, rows[:-2], strict=True)}
        self.tokens = 0

    def add(self, inputs: torch.Tensor) -> None:
        """Add activations of shape [tokens, in]."""
        x = inputs.detach()
        if x.is_cuda and x.dtype == torch.bfloat16:
            for start, row in self._rows.items():
                torch.addmm(row, x[:, start : start + len(row)].T, x[:, start:], out_dtype=torch.float32, out=row)
        else:
            with rounded_inputs(allowed=x.dtype == torch.bfloat16):
                wide = x.float()
                for start, row in self._rows.items():
                    row.addmm_(wide[:, start : start + len(row)].T, wide[:, start:])
        self.magnitude_sum += x.abs().sum(dim=0, dtype=torch.float32)
        self.tokens += x.shape[0]

    def sum_over_ranks(self) -> None:
        """Make this the statistics of all ranks' tokens: one all-reduce."""
        if is_initialized():
            self._sums[-1] = self.tokens
            all_reduce(self._sums)
            self.tokens = round(float(self._sums[-1]))

    @property
    def gram(self) -> torch.Tensor:
        """G [in, in], put together each time: what is kept is its upper triangle."""
        width = len(self.magnitude_sum)
        gram = self._sums.new_empty(width, width)
        for start, row in self._rows.items():
            gram[start:, start : start + len(row)] = row.T
            gram[start : start + len(row), start:] = row
        return gram

    @property
    def mean_magnitude(self) -> torch.Tensor:
        return self.magnitude_sum / self.tokens


class OutputEnergy:
    """Squared outputs over all tokens, of rows of float32 or bfloat16 matrices [out, in] whose inputs have G [in, in].

    A GPU rounds both to bfloat16 and accumulates in float32, which is all that comparing errors needs.
    """

    def __init__(self, gram: torch.Tensor) -> None:
        self._gram = gram.bfloat16() if gram.is_cuda else gram

    def through(self, error: torch.Tensor) -> torch.Tensor:
        """Return E G in float32."""
        if error.is_cuda:
            return torch.mm(error.bfloat16(), self._gram, out_dtype=torch.float32)
        return torch.mm(error, self._gram)

    def of_rows(self, error: torch.Tensor) -> torch.Tensor:
        """Return e G eᵀ for each row e."""
        return (self.through(error) * error).sum(dim=1)


def diagonal_blocks(gram: torch.Tensor, size: int) -> torch.Tensor:
    """Return the blocks [groups, size, size] on G's diagonal."""
    return torch.stack([gram[start : start + size, start : start + size] for start in range(0, len(gram), size)])
