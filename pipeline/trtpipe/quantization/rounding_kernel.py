"""One block of columns rounded in one GPU kernel: a kernel a column would spend its time on being started."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trtpipe.quantization.grid import Grid

OUTPUTS_PER_PROGRAM = 32


def round_block(
    targets: torch.Tensor,
    weights: torch.Tensor,
    factor: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor,
    group: torch.Tensor,
    codes: torch.Tensor,
    errors: torch.Tensor,
    grid: Grid,
) -> None:
    """Round columns as `rounding._column_by_column` does, of the same arguments; codes are int8."""
    columns, outputs = targets.shape
    programs = (triton.cdiv(outputs, OUTPUTS_PER_PROGRAM),)
    _round_block[programs](
        targets, weights, factor, *factor.stride(), scales, zeros, group, codes, errors, outputs, *grid.limits,
        COLUMNS=columns, OUTPUTS=OUTPUTS_PER_PROGRAM, num_warps=1,
    )  # fmt: skip


@triton.jit  # type: ignore[untyped-decorator] # Triton is not typed
def _round_block(  # type: ignore[no-untyped-def]
    targets, weights, factor, factor_row, factor_column, scales, zeros, group, codes, errors, outputs, low, high,
    COLUMNS: tl.constexpr, OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Each program takes all columns of some outputs; the errors it has made stay in registers.

    A column's numbers are loaded while the one before it is computed.
    """
    column = tl.arange(0, COLUMNS)
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    inside = output < outputs
    made = tl.zeros([COLUMNS, OUTPUTS], tl.float32)
    own = tl.load(group) * outputs + output
    share = tl.zeros([COLUMNS], tl.float32)
    scale, zero = tl.load(scales + own, mask=inside, other=1.0), tl.load(zeros + own, mask=inside, other=0.0)
    target, weight = tl.load(targets + output, mask=inside), tl.load(weights + output, mask=inside)
    for now in range(COLUMNS):
        after = tl.minimum(now + 1, COLUMNS - 1)
        own = tl.load(group + after) * outputs + output
        share_after = tl.load(factor + column * factor_row + after * factor_column, mask=column < after, other=0.0)
        scale_after = tl.load(scales + own, mask=inside, other=1.0)
        zero_after = tl.load(zeros + own, mask=inside, other=0.0)
        target_after = tl.load(targets + after * outputs + output, mask=inside)
        weight_after = tl.load(weights + after * outputs + output, mask=inside)
        aim = target + tl.sum(made * share[:, None], 0)
        code = tl.minimum(tl.maximum(libdevice.rint(aim / scale) + zero, low), high)
        error = weight - (code - zero) * scale
        tl.store(codes + now * outputs + output, code.to(tl.int8), mask=inside)
        tl.store(errors + now * outputs + output, error, mask=inside)
        made = tl.where(column[:, None] == now, error[None, :], made)
        share, scale, zero, target, weight = share_after, scale_after, zero_after, target_after, weight_after
