"""The int4 grid on a GPU: weights rounded under scales, and the error of that, in one kernel that reads them once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

ROWS_PER_PROGRAM = 32


def rounding_error(
    weight: torch.Tensor, scale: torch.Tensor | None, kept: torch.Tensor | None, size: int, limits: tuple[int, int]
) -> torch.Tensor:
    """Return what `grid.rounding_error` does, in bfloat16.

    ``limits``: lowest and highest code; from 0 on, asymmetric.
    """
    rows, columns = weight.shape
    error = torch.empty_like(weight, dtype=torch.bfloat16)
    grid = (triton.cdiv(rows, ROWS_PER_PROGRAM), columns // size)
    _rounding_error[grid](
        weight.contiguous(), scale, kept, error, rows, columns // size, *limits,
        SYMMETRIC=limits[0] < 0, ROWS=ROWS_PER_PROGRAM, SIZE=size, num_warps=4,
    )  # fmt: skip
    return error


@triton.jit  # type: ignore[untyped-decorator] # Triton is not typed
def nearest(values, share, low, high, SYMMETRIC: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return what one group of each row is rounded to: ``values`` [rows, size], ``share`` [rows] of the range kept."""
    if SYMMETRIC:
        bottom = tl.zeros_like(share)
        scale = tl.max(tl.abs(values), 1) * share / high
    else:
        bottom = tl.minimum(tl.min(values, 1), 0.0) * share
        scale = (tl.maximum(tl.max(values, 1), 0.0) * share - bottom) / high
    scale = scale.to(tl.bfloat16).to(tl.float32)
    scale = tl.where(scale == 0.0, 1.0, scale)
    zero = tl.minimum(tl.maximum(libdevice.rint(-bottom / scale), 0.0), 15.0)
    code = libdevice.rint(values / scale[:, None]) + zero[:, None]
    code = tl.minimum(tl.maximum(code, low), high)
    return (code - zero[:, None]) * scale[:, None]


@triton.jit  # type: ignore[untyped-decorator] # Triton is not typed
def _rounding_error(  # type: ignore[no-untyped-def]
    weight, scale, kept, error, rows, groups, low, high,
    SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Each program takes one group of some rows."""
    group = tl.program_id(1)
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    inside = row < rows
    places = (row.to(tl.int64) * groups * SIZE + group * SIZE)[:, None] + column[None, :]
    values = tl.load(weight + places, mask=inside[:, None], other=0.0)
    share = tl.full([ROWS], 1.0, tl.float32)
    if kept is not None:
        share = tl.load(kept + row * groups + group, mask=inside, other=1.0)
    if scale is None:
        left = nearest(values, share, low, high, SYMMETRIC) - values
    else:
        by = tl.load(scale + group * SIZE + column)[None, :]
        left = nearest(values * by, share, low, high, SYMMETRIC) / by - values
    tl.store(error + places, left.to(tl.bfloat16), mask=inside[:, None])
