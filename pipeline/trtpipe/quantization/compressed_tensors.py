"""Write the compressed-tensors layout (`pack-quantized`) that vLLM loads.

Upstream facts (compressed-tensors `compressors/pack_quantized/base.py`): `weight_packed` int32 [out, in/8], lowest
nibble first, value + 8; `weight_scale` [out, in/group]; where asymmetric `weight_zero_point` int32 [out/8, in/group],
packed along the rows; `weight_shape` int64 [2]; per-tensor `k_scale` and `v_scale` of the FP8 KV cache beside the
attention module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import torch

from trtpipe.quantization.grid import SYMMETRIC, Quantized
from trtpipe.quantization.kv_range import KvRange

NIBBLES_PER_INT32 = 8


def pack(codes: torch.Tensor) -> torch.Tensor:
    """Pack int4 codes [rows, columns] (int8, -8..7) into int32 [rows, columns/8]; the last word is filled up by 0."""
    nibbles = codes.to(torch.int64) - SYMMETRIC[0]
    filled = torch.nn.functional.pad(nibbles, (0, -codes.shape[1] % NIBBLES_PER_INT32))
    shifts = torch.arange(0, 32, 4, dtype=torch.int64, device=codes.device)
    words: torch.Tensor = filled.unflatten(1, (-1, NIBBLES_PER_INT32)) << shifts
    return words.sum(dim=2).to(torch.int32)


def layer_tensors(
    prefix: str,
    linears: dict[str, Quantized],
    others: dict[str, torch.Tensor],
    kv: KvRange,
    *,
    kv_scales: Literal["shared", "separate"] = "separate",
) -> dict[str, torch.Tensor]:
    """Return the tensors of one decoder layer under their names in the checkpoint.

    With ``kv_scales`` shared, keys and values both get the larger scale: what TensorRT-LLM makes of two.
    """
    tensors = {f"{prefix}.{name}": tensor for name, tensor in others.items()}
    for name, quantized in linears.items():
        tensors |= {f"{prefix}.{name}.{suffix}": tensor for suffix, tensor in linear_tensors(quantized).items()}
    scales = (kv.key_scale, kv.value_scale)
    if kv_scales == "shared":
        scales = (max(scales), max(scales))
    for side, scale in zip("kv", scales, strict=True):
        tensors[f"{prefix}.self_attn.{side}_scale"] = torch.tensor([scale], dtype=torch.float32)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def linear_tensors(quantized: Quantized) -> dict[str, torch.Tensor]:
    """Return the tensors of one linear by the last part of their names."""
    signed = 0 if quantized.zeros is None else SYMMETRIC[0]  # 0..15 is stored as -8..7 is
    tensors = {
        "weight_packed": pack(quantized.codes + signed),
        "weight_scale": quantized.scales,
        "weight_shape": torch.tensor(quantized.codes.shape, dtype=torch.int64),
    }
    if quantized.zeros is not None:
        tensors["weight_zero_point"] = pack(quantized.zeros.T + signed).T
    return tensors


def quantization_config(group_size: int, unquantized: Iterable[str], *, symmetric: bool = True) -> dict[str, Any]:
    """Return the `quantization_config` of config.json: int4 weights, static FP8 e4m3 KV cache.

    ``unquantized``: names of linears, within their decoder layer, that have no codes.
    """
    weights = {
        "num_bits": 4,
        "type": "int",
        "symmetric": symmetric,
        "strategy": "group",
        "group_size": group_size,
        "dynamic": False,
        "observer": "minmax",
        "actorder": None,
    }
    kv_cache = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "tensor", "dynamic": False}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head", *(f"re:.*\\.{re.escape(name)}$" for name in unquantized)],
        "kv_cache_scheme": kv_cache,
    }
