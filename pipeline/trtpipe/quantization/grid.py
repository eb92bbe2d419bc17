"""The symmetric int4 grid: codes -8..7, one scale per row and group of input columns."""

from __future__ import annotations

from dataclasses import dataclass

import torch

CODE_MIN, CODE_MAX = -8, 7


@dataclass(frozen=True)
class Quantized:
    """``codes`` int8 [out, in], ``scales`` bfloat16 [out, in / group_size]; weight = code * scale."""

    codes: torch.Tensor
    scales: torch.Tensor

    @property
    def group_size(self) -> int:
        return self.codes.shape[1] // self.scales.shape[1]

    def weight(self) -> torch.Tensor:
        """Return the float32 weight [out, in] that these codes stand for."""
        return (_grouped(self.codes.float(), self.group_size) * self.scales.float().unsqueeze(2)).flatten(1)


def quantize(weight: torch.Tensor, group_size: int) -> Quantized:
    """Round a float32 weight [out, in] to the nearest grid point.

    Scales are rounded to bfloat16 first, so that the codes fit the scales that are stored; a bfloat16 of this
    size is exact in float16 too, so every export can hold the same numbers. An all-zero group gets scale 1.
    """
    grouped = _grouped(weight, group_size)
    scales = (grouped.abs().amax(dim=2) / CODE_MAX).bfloat16()
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    codes = (grouped / scales.float().unsqueeze(2)).round_().clamp_(CODE_MIN, CODE_MAX)
    return Quantized(codes.flatten(1).to(torch.int8), scales)


def _grouped(matrix: torch.Tensor, group_size: int) -> torch.Tensor:
    return matrix.reshape(matrix.shape[0], -1, group_size)
