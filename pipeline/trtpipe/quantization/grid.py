"""The int4 grid: 16 codes, one 16-bit scale per row and group of input columns, and a zero point if asymmetric."""

from __future__ import annotations

from dataclasses import dataclass

import torch

SYMMETRIC = (-8, 7)
ASYMMETRIC = (0, 15)


@dataclass(frozen=True)
class Quantized:
    """A rounded weight: (code - zero) * scale.

    ``codes`` int8 [out, in]: -8..7 where symmetric (``zeros`` is None), else 0..15. ``scales`` bfloat16 and ``zeros``
    int8 [out, in / group_size].
    """

    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None = None

    @property
    def group_size(self) -> int:
        return self.codes.shape[1] // self.scales.shape[1]

    def weight(self) -> torch.Tensor:
        """Return the float32 weight [out, in] that these codes stand for."""
        codes = grouped(self.codes.float(), self.group_size)
        if self.zeros is not None:
            codes = codes - self.zeros.float().unsqueeze(2)
        return (codes * self.scales.float().unsqueeze(2)).flatten(1)

    def rows(self, start: int, end: int) -> Quantized:
        """Return some rows: one linear of several that were rounded together."""
        zeros = None if self.zeros is None else self.zeros[start:end]
        return Quantized(self.codes[start:end], self.scales[start:end], zeros)


@dataclass(frozen=True)
class Grid:
    """Scales (float32 values of bfloat16 precision) and zero points [out, in / group_size] to round to."""

    scales: torch.Tensor
    zeros: torch.Tensor
    group_size: int
    symmetric: bool

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest code."""
        return SYMMETRIC if self.symmetric else ASYMMETRIC

    def codes(self, values: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
        """Return the nearest codes (as floats) under scales and zeros that broadcast to ``values``."""
        return (values / scales).round_().add_(zeros).clamp_(*self.limits)

    def nearest(self, weight: torch.Tensor) -> Quantized:
        """Round a float32 weight [out, in] to the nearest grid points."""
        codes = self.codes(grouped(weight, self.group_size), self.scales.unsqueeze(2), self.zeros.unsqueeze(2))
        return self.quantized(codes.flatten(1))

    def quantized(self, codes: torch.Tensor) -> Quantized:
        """Return codes [out, in] with this grid's scales."""
        zeros = None if self.symmetric else self.zeros.to(torch.int8)
        return Quantized(codes.to(torch.int8), self.scales.bfloat16(), zeros)


def fit(weight: torch.Tensor, group_size: int, *, symmetric: bool = True, kept: torch.Tensor | None = None) -> Grid:
    """Lay a grid over each group of a float32 weight [out, in]: over its whole range, or the share ``kept`` of it.

    Scales are rounded to bfloat16 first, so that the codes fit the scales that are stored; a bfloat16 of this size is
    exact in float16 too, so every export can hold the same numbers. An all-zero group gets scale 1.
    """
    parts = grouped(weight, group_size)
    share = 1.0 if kept is None else kept
    if symmetric:
        scales = parts.abs().amax(dim=2) * share / SYMMETRIC[1]
        zeros = torch.zeros_like(scales)
    else:
        low, high = parts.amin(dim=2).clamp_max(0) * share, parts.amax(dim=2).clamp_min(0) * share
        scales = (high - low) / ASYMMETRIC[1]
    scales = scales.bfloat16().float()
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    if not symmetric:
        zeros = (-low / scales).round_().clamp_(*ASYMMETRIC)
    return Grid(scales, zeros, group_size, symmetric)


def grouped(matrix: torch.Tensor, group_size: int) -> torch.Tensor:
    """Return a matrix [out, in] as [out, groups, group_size]."""
    return matrix.reshape(matrix.shape[0], -1, group_size)


def quantize(weight: torch.Tensor, group_size: int, *, symmetric: bool = True) -> Quantized:
    """Round a float32 weight [out, in] to the nearest points of a grid over its whole range."""
    return fit(weight, group_size, symmetric=symmetric).nearest(weight)


def rounding_error(
    weight: torch.Tensor,
    group_size: int,
    *,
    symmetric: bool,
    scale: torch.Tensor | None = None,
    kept: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return what rounding changes in a float32 weight [out, in], in bfloat16 on a GPU.

    ``scale`` [in] multiplies the columns before rounding and divides them afterwards; ``kept``: see `fit`.
    """
    if weight.is_cuda:
        from trtpipe.quantization import grid_kernel  # noqa: PLC0415 # needs Triton's compiler

        limits = SYMMETRIC if symmetric else ASYMMETRIC
        error: torch.Tensor = grid_kernel.rounding_error(weight, scale, kept, group_size, limits)
        return error
    scaled = weight if scale is None else weight * scale
    rounded = fit(scaled, group_size, symmetric=symmetric, kept=kept).nearest(scaled).weight()
    return (rounded if scale is None else rounded.div_(scale)).sub_(weight)
