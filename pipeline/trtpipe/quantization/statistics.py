"""Statistics of a linear's input over all calibration tokens: the Gram matrix and the mean magnitude."""

from __future__ import annotations

import torch


class InputStatistics:
    """G = XᵀX [in, in] and the sum of |x| [in], both float32, accumulated batch by batch."""

    def __init__(self, width: int, device: torch.device) -> None:
        self.gram = torch.zeros(width, width, device=device)
        self.magnitude_sum = torch.zeros(width, device=device)
        self.tokens = 0

    def add(self, inputs: torch.Tensor) -> None:
        """Add activations of shape [tokens, in].

        The product is taken in float32: a bfloat16 product on a CPU comes back rounded to bfloat16.
        """
        x = inputs.detach().float()
        self.gram.addmm_(x.T, x)
        self.magnitude_sum += x.abs().sum(dim=0)
        self.tokens += x.shape[0]

    @property
    def mean_magnitude(self) -> torch.Tensor:
        return self.magnitude_sum / self.tokens

    def output_energy(self, weight: torch.Tensor) -> float:
        """Return ‖X Wᵀ‖² = tr(W G Wᵀ) for a float32 weight [out, in]: without another pass over the tokens."""
        return float(((weight @ self.gram) * weight).sum())
