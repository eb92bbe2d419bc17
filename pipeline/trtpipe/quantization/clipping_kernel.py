"""All shares of all groups tried in one GPU kernel, which reads each weight once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trtpipe.quantization.grid_kernel import nearest

ROWS_PER_PROGRAM = 64


def best_shares(
    weight: torch.Tensor, blocks: torch.Tensor, shares: tuple[float, ...], limits: tuple[int, int]
) -> torch.Tensor:
    """Return for each row and group of ``weight`` [out, in] the share whose error is least [out, groups].

    ``blocks`` [groups, size, size]: G's diagonal blocks. ``limits``: lowest and highest code; from 0 on, asymmetric.
    """
    rows, (groups, size, _) = len(weight), blocks.shape
    choices = torch.tensor(shares, device=weight.device)
    kept = torch.empty(rows, groups, device=weight.device)
    grid = (triton.cdiv(rows, ROWS_PER_PROGRAM), groups)
    _best_shares[grid](
        weight.contiguous(), blocks, choices, kept, rows, groups, *limits,
        CHOICES=len(shares), SYMMETRIC=limits[0] < 0, ROWS=ROWS_PER_PROGRAM, SIZE=size, num_warps=8,
    )  # fmt: skip
    return kept


@triton.jit  # type: ignore[untyped-decorator] # Triton is not typed
def _best_shares(  # type: ignore[no-untyped-def]
    weight, blocks, choices, kept, rows, groups, low, high,
    CHOICES: tl.constexpr, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Each program takes one group of some rows."""
    group = tl.program_id(1)
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    inside = row < rows
    start = row.to(tl.int64) * groups * SIZE + group * SIZE
    values = tl.load(weight + start[:, None] + column[None, :], mask=inside[:, None], other=0.0)
    block = tl.load(blocks + group.to(tl.int64) * SIZE * SIZE + column[:, None] * SIZE + column[None, :])
    least = tl.full([ROWS], float("inf"), tl.float32)
    best = tl.full([ROWS], 1.0, tl.float32)
    for choice in range(CHOICES):
        share = tl.load(choices + choice)
        error = nearest(values, tl.zeros([ROWS], tl.float32) + share, low, high, SYMMETRIC) - values
        total = tl.sum(tl.dot(error, block, input_precision="tf32") * error, 1)
        best = tl.where(total < least, share, best)
        least = tl.minimum(total, least)
    tl.store(kept + row * groups + group, best, mask=inside)
