"""Write AutoAWQ's GEMM layout, which TensorRT-LLM's own convert_checkpoint.py turns into `W4A16_GPTQ`.

From AutoAWQ `awq/modules/linear/gemm.py` (WQLinear_GEMM: tensors, their order), `awq/models/_config.py` (config keys);
from TensorRT-LLM `examples/models/core/{llama,qwen}/convert_checkpoint.py` (what detects it, options).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.rotary import rotary_of
from trtpipe.quantization.exports.scales import float16_scales, rounded_note
from trtpipe.quantization.exports.trtllm_tensors import cast
from trtpipe.quantization.grid import SYMMETRIC, Quantized
from trtpipe.quantization.shards import ShardWriter

SYMMETRIC_ZERO = -SYMMETRIC[0]
PACKED, SCALE_SUFFIX = ".weight_packed", ".k_scale"
REPLACED = (PACKED, ".weight_scale", ".weight_shape", ".weight_zero_point", ".k_scale", ".v_scale")
COPIED = ("*.jinja", "tokenizer*", "merges.txt", "vocab.json", "special_tokens_map.json", "generation_config.json")
CONVERTERS = {"llama": "examples/models/core/llama", "qwen2": "examples/models/core/qwen"}


def linear_tensors(quantized: Quantized) -> dict[str, torch.Tensor]:
    """Return `qweight` int32 [in, out / 8], `qzeros` int32 [in / group, out / 8], `scales` float16 [in / group, out].

    Symmetric codes are written as 0..15 with zero point 8.
    """
    values, zeros = quantized.codes, quantized.zeros
    if zeros is None:
        values, zeros = values + SYMMETRIC_ZERO, torch.full(quantized.scales.shape, SYMMETRIC_ZERO, dtype=torch.int8)
    return {
        "qweight": nibbles.pack_awq(values.T),
        "qzeros": nibbles.pack_awq(zeros.T),
        "scales": quantized.scales.T.to(torch.float16).contiguous(),
    }


def export(source: Path, folder: Path) -> list[str]:
    """Export a canonical checkpoint into ``folder``, a shard a layer; return what was rounded or left out."""
    checkpoint = Checkpoint(source)
    writer, rounded = ShardWriter(folder, checkpoint.layers), 0
    for layer in range(checkpoint.layers):
        tensors, count = _shard(checkpoint, [name for name in checkpoint.names() if _layer_of(name) == layer])
        writer.write(layer, tensors)
        rounded += count
    writer.write(checkpoint.layers, _shard(checkpoint, [n for n in checkpoint.names() if _layer_of(n) is None])[0])
    writer.finish()
    config = json.dumps(awq_config(checkpoint), indent=2, sort_keys=True)
    (folder / "config.json").write_text(config + "\n", encoding="utf-8")
    for pattern in COPIED:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    notes = ["norms, embedding and head are float16, the type of this layout"]
    if any(name.endswith(SCALE_SUFFIX) for name in checkpoint.names()):
        notes.append("the FP8 KV scales of the checkpoint are left out: this layout has none")
    return [*notes, rounded_note(rounded)] if rounded else notes


def awq_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return config.json. Rotary values are written in both forms: transformers 4 reads no `rope_parameters`."""
    base, scaling = rotary_of(checkpoint.config)
    return checkpoint.config | {
        "dtype": "float16",
        "torch_dtype": "float16",
        "rope_theta": base,
        "rope_scaling": scaling,
        "quantization_config": {
            "quant_method": "awq",
            "version": "gemm",
            "bits": 4,
            "group_size": checkpoint.group_size,
            "zero_point": True,
            "modules_to_not_convert": None,
        },
    }


def conversion_command(
    model_type: str, folder: Path, output: Path, *, tensor_parallel: int, pipeline_parallel: int
) -> list[str]:
    """Return the command, for TensorRT-LLM's source tree, that makes a TensorRT-LLM checkpoint of the export."""
    return [
        "python3", f"{CONVERTERS[model_type]}/convert_checkpoint.py",
        "--model_dir", str(folder), "--output_dir", str(output), "--dtype", "float16",
        "--tp_size", str(tensor_parallel), "--pp_size", str(pipeline_parallel),
    ]  # fmt: skip


def _shard(checkpoint: Checkpoint, names: list[str]) -> tuple[dict[str, torch.Tensor], int]:
    tensors: dict[str, torch.Tensor] = {}
    rounded = 0
    for name in names:
        if name.endswith(PACKED):
            linear = name.removesuffix(PACKED)
            quantized = checkpoint.linear(linear)
            rounded += float16_scales(quantized.scales, linear)[1]
            tensors |= {f"{linear}.{suffix}": tensor for suffix, tensor in linear_tensors(quantized).items()}
        elif not name.endswith(REPLACED):
            tensors[name] = cast(checkpoint.tensor(name), torch.float16, name)
    return tensors, rounded


def _layer_of(name: str) -> int | None:
    parts = name.split(".")
    return int(parts[2]) if name.startswith("model.layers.") else None
