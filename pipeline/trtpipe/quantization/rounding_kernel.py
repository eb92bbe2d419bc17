"""One block of columns rounded in one GPU kernel: a kernel a column would spend its time on being started."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

OUTPUTS_PER_PROGRAM = 32


def round_block(
    block: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor,
    factor: torch.Tensor,
    codes: torch.Tensor,
    errors: torch.Tensor,
    limits: tuple[int, int],
) -> None:
    """Round ``block`` [columns, out]; fill ``codes`` (int8) and the ``errors`` to be made up for, of the same shape.

    ``scales`` and ``zeros`` [columns, out]; ``factor`` [columns, columns]: the block of U on its diagonal.
    """
    columns, outputs = block.shape
    grid = (triton.cdiv(outputs, OUTPUTS_PER_PROGRAM),)
    _kernel[grid](
        block, scales, zeros, factor.contiguous(), codes, errors, outputs, *limits,
        COLUMNS=columns, OUTPUTS=OUTPUTS_PER_PROGRAM, num_warps=1,
    )  # fmt: skip


@triton.jit  # type: ignore[untyped-decorator] # Triton is not typed
def _kernel(  # type: ignore[no-untyped-def]
    block, scales, zeros, factor, codes, errors, outputs, low, high, COLUMNS: tl.constexpr, OUTPUTS: tl.constexpr
):
    """Each program takes all columns of some outputs; what it has rounded stays in registers."""
    column = tl.arange(0, COLUMNS)
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    inside = output < outputs
    places = column[:, None] * outputs + output[None, :]
    values = tl.load(block + places, mask=inside[None, :], other=0.0)
    made = tl.zeros([COLUMNS, OUTPUTS], tl.float32)
    for now in range(COLUMNS):
        share = tl.load(factor + column * COLUMNS + now, mask=column < now, other=0.0)
        value = tl.sum(tl.where(column[:, None] == now, values, 0.0), 0) - tl.sum(made * share[:, None], 0)
        scale = tl.load(scales + now * outputs + output, mask=inside, other=1.0)
        zero = tl.load(zeros + now * outputs + output, mask=inside, other=0.0)
        code = libdevice.rint(value / scale) + zero
        code = tl.minimum(tl.maximum(code, low), high)
        error = (value - (code - zero) * scale) / tl.load(factor + now * COLUMNS + now)
        tl.store(codes + now * outputs + output, code.to(tl.int8), mask=inside)
        made = tl.where(column[:, None] == now, error[None, :], made)
    tl.store(errors + places, made, mask=inside[None, :])
