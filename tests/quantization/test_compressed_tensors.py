"""Packing, read back by compressed-tensors' own unpacker."""

from __future__ import annotations

import pytest
import torch
from compressed_tensors.compressors import PackedQuantizationCompressor
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from compressed_tensors.quantization import QuantizationConfig

from trtpipe.quantization.compressed_tensors import layer_tensors, linear_tensors, pack, quantization_config
from trtpipe.quantization.grid import quantize
from trtpipe.quantization.kv_range import KvRange


def test_upstreams_unpacker_reads_the_same_codes() -> None:
    codes = torch.randint(-8, 8, (6, 64), dtype=torch.int8)
    assert torch.equal(unpack_from_int32(pack(codes), 4, torch.Size([6, 64])), codes)


def test_tensor_names_and_types() -> None:
    quantized = quantize(torch.randn(4, 128), 64)
    tensors = layer_tensors("model.layers.7", {"mlp.up_proj": quantized}, {}, KvRange(key_amax=448.0, value_amax=4.48))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()} == {
        "model.layers.7.mlp.up_proj.weight_packed": ((4, 16), torch.int32),
        "model.layers.7.mlp.up_proj.weight_scale": ((4, 2), torch.bfloat16),
        "model.layers.7.mlp.up_proj.weight_shape": ((2,), torch.int64),
        "model.layers.7.self_attn.k_scale": ((1,), torch.float32),
        "model.layers.7.self_attn.v_scale": ((1,), torch.float32),
    }
    assert tensors["model.layers.7.self_attn.k_scale"].item() == 1.0


@pytest.mark.parametrize("rows", [16, 12])  # 12: the last word of the zero points is not full
@pytest.mark.parametrize("symmetric", [True, False])
def test_upstream_reads_the_same_weight_by_our_config(symmetric: bool, rows: int) -> None:
    quantized = quantize(torch.randn(rows, 128) + 0.3, 64, symmetric=symmetric)
    read = QuantizationConfig.model_validate(quantization_config(64, [], symmetric=symmetric))
    tensors = linear_tensors(quantized)
    assert ("weight_zero_point" in tensors) == (not symmetric)
    plain = PackedQuantizationCompressor.decompress(tensors, read.config_groups["group_0"])
    assert torch.equal(plain["weight"].float(), quantized.weight().bfloat16().float())


def test_a_shared_kv_scale_is_the_larger_one() -> None:
    tensors = layer_tensors("m", {}, {}, KvRange(key_amax=448.0, value_amax=4.48), kv_scales="shared")
    assert {name: tensor.item() for name, tensor in tensors.items()} == {
        "m.self_attn.k_scale": 1.0, "m.self_attn.v_scale": 1.0
    }  # fmt: skip
