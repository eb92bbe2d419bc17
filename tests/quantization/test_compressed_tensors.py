"""Packing, read back by compressed-tensors' own unpacker."""

from __future__ import annotations

import torch
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32

from trtpipe.quantization.compressed_tensors import layer_tensors, pack
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
