"""Statistics of a linear's input over all calibration tokens: the Gram matrix and the mean magnitude."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def float32_accumulation(dtype: torch.dtype) -> Iterator[None]:
    """Make float32 products of values that came as ``dtype`` fast without losing what they hold.

    A bfloat16 product on a CPU comes back rounded to bfloat16. A float32 one is slow there, unless oneDNN may round
    its inputs to bfloat16, which changes nothing where they were bfloat16 before: then the matrix units multiply and
    accumulate in float32 (the relative error of G was 5e-7 either way).
    """
    settings = torch.backends.mkldnn.matmul  # type: ignore[attr-defined] # made at run time
    before = settings.fp32_precision
    settings.fp32_precision = "bf16" if dtype == torch.bfloat16 else "ieee"
    try:
        yield
    finally:
        settings.fp32_precision = before


class InputStatistics:
    """G = XᵀX [in, in] and the sum of |x| [in], both float32, accumulated batch by batch."""

    def __init__(self, width: int, device: torch.device) -> None:
        self.gram = torch.zeros(width, width, device=device)
        self.magnitude_sum = torch.zeros(width, device=device)
        self.tokens = 0

    def add(self, inputs: torch.Tensor) -> None:
        """Add activations of shape [tokens, in]."""
        x = inputs.detach().float()
        with float32_accumulation(inputs.dtype):
            self.gram.addmm_(x.T, x)
        self.magnitude_sum += x.abs().sum(dim=0)
        self.tokens += x.shape[0]

    @property
    def mean_magnitude(self) -> torch.Tensor:
        return self.magnitude_sum / self.tokens

    def output_energy(self, weight: torch.Tensor) -> float:
        """Return ‖X Wᵀ‖² = tr(W G Wᵀ) for a float32 weight [out, in]: without another pass over the tokens."""
        return float(row_errors(weight, self.gram).sum())


def row_errors(error: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
    """Return e G eᵀ for each row e of a float32 matrix [out, in]: its squared output over all tokens."""
    return ((error @ gram) * error).sum(dim=1)
