"""Two and eight int4 codes to a word: the three orders in which checkpoint layouts keep them, both ways."""

from __future__ import annotations

import torch

PER_INT32 = 8
BITS = 4
# AutoAWQ `awq/modules/linear/gemm.py` (WQLinear_GEMM.from_linear): nibble n of a word holds column ORDER[n] of eight.
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def unpack_columns(packed: torch.Tensor) -> torch.Tensor:
    """Unpack int32 [rows, columns / 8], lowest nibble first, into int8 values 0..15 [rows, columns]."""
    values = torch.empty(packed.shape[0], packed.shape[1] * PER_INT32, dtype=torch.int8)
    for nibble in range(PER_INT32):
        values[:, nibble::PER_INT32] = (packed >> (BITS * nibble)) & 15
    return values


def pack_row_pairs(codes: torch.Tensor) -> torch.Tensor:
    """Pack signed int8 codes -8..7 [rows, columns] into int8 [rows / 2, columns]: row 2j low, row 2j + 1 high.

    Two's complement nibbles, as in ModelOpt `modelopt/torch/export/quant_utils.py` (to_quantized_weight).
    """
    nibbles = codes.view(torch.uint8)
    return ((nibbles[0::2] & 15) | (nibbles[1::2] << BITS)).view(torch.int8)


def unpack_row_pairs(packed: torch.Tensor) -> torch.Tensor:
    """Unpack what ``pack_row_pairs`` packs: one byte [rows / 2, columns] into signed int8 codes [rows, columns]."""
    low, high = packed.view(torch.uint8) & 15, packed.view(torch.uint8) >> BITS
    nibbles = torch.stack([low, high], dim=1).flatten(0, 1).view(torch.int8)
    return torch.where(nibbles > 7, nibbles - 16, nibbles)


def pack_awq(values: torch.Tensor) -> torch.Tensor:
    """Pack int8 values 0..15 [rows, columns] into int32 [rows, columns / 8] in AutoAWQ's order."""
    packed = torch.zeros(values.shape[0], values.shape[1] // PER_INT32, dtype=torch.int32)
    for nibble, column in enumerate(AWQ_ORDER):
        packed |= values[:, column::PER_INT32].to(torch.int32) << (BITS * nibble)
    return packed


def unpack_awq(packed: torch.Tensor) -> torch.Tensor:
    """Unpack int32 [rows, columns / 8] in AutoAWQ's order into int8 values 0..15 [rows, columns]."""
    values = torch.empty(packed.shape[0], packed.shape[1] * PER_INT32, dtype=torch.int8)
    for nibble, column in enumerate(AWQ_ORDER):
        values[:, column::PER_INT32] = (packed >> (BITS * nibble)) & 15
    return values
