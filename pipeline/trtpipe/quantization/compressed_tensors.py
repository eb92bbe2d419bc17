"""Write the compressed-tensors layout (`pack-quantized`) that vLLM loads.

Upstream facts: `weight_packed` int32 [out, in/8], lowest nibble first, value + 8; `weight_scale` [out, in/group];
`weight_shape` int64 [2]; per-tensor `k_scale` and `v_scale` of the FP8 KV cache beside the attention module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

from trtpipe.quantization.grid import Quantized
from trtpipe.quantization.kv_range import KvRange

NIBBLES_PER_INT32 = 8


def pack(codes: torch.Tensor) -> torch.Tensor:
    """Pack int4 codes [out, in] (int8, -8..7) into int32 [out, in/8]."""
    nibbles = (codes.to(torch.int64) + 8).reshape(codes.shape[0], -1, NIBBLES_PER_INT32)
    shifts = torch.arange(0, 32, 4, dtype=torch.int64)
    return (nibbles << shifts).sum(dim=2).to(torch.int32)


def layer_tensors(
    prefix: str, linears: dict[str, Quantized], others: dict[str, torch.Tensor], kv: KvRange
) -> dict[str, torch.Tensor]:
    """Return the tensors of one decoder layer under their names in the checkpoint."""
    tensors = {f"{prefix}.{name}": tensor for name, tensor in others.items()}
    for name, quantized in linears.items():
        tensors[f"{prefix}.{name}.weight_packed"] = pack(quantized.codes)
        tensors[f"{prefix}.{name}.weight_scale"] = quantized.scales
        tensors[f"{prefix}.{name}.weight_shape"] = torch.tensor(quantized.codes.shape, dtype=torch.int64)
    tensors[f"{prefix}.self_attn.k_scale"] = torch.tensor([kv.key_scale], dtype=torch.float32)
    tensors[f"{prefix}.self_attn.v_scale"] = torch.tensor([kv.value_scale], dtype=torch.float32)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def quantization_config(group_size: int, unquantized: Iterable[str]) -> dict[str, Any]:
    """Return the `quantization_config` of config.json: symmetric int4 weights, static FP8 e4m3 KV cache.

    ``unquantized``: names of linears, within their decoder layer, that have no codes.
    """
    weights = {
        "num_bits": 4,
        "type": "int",
        "symmetric": True,
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
