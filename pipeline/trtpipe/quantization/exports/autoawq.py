"""Write AutoAWQ's GEMM layout, which TensorRT-LLM's own convert_checkpoint.py turns into `W4A16_GPTQ`.

From AutoAWQ `awq/modules/linear/gemm.py` (WQLinear_GEMM: tensors, their order), `awq/models/_config.py` (config keys).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trtpipe.core.progress import Reporter
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.rotary import older_form
from trtpipe.quantization.exports.scales import float16_note
from trtpipe.quantization.exports.trtllm_tensors import cast
from trtpipe.quantization.grid import SYMMETRIC, Quantized
from trtpipe.quantization.shards import ShardWriter

SYMMETRIC_ZERO = -SYMMETRIC[0]
PACKED, SCALE_SUFFIX = ".weight_packed", ".k_scale"
REPLACED = (PACKED, ".weight_scale", ".weight_shape", ".weight_zero_point", ".k_scale", ".v_scale")
COPIED = ("*.jinja", "tokenizer*", "merges.txt", "vocab.json", "special_tokens_map.json", "generation_config.json")


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


@dataclass(frozen=True)
class AutoawqExport:
    """A checkpoint that this layout can hold; ``notes``: what is rounded, expressed otherwise or left out."""

    checkpoint: Checkpoint
    notes: list[str]

    def write(self, folder: Path, reporter: Reporter) -> None:
        """Write a shard a layer, then the rest, the index, config.json and the tokenizer."""
        checkpoint = self.checkpoint
        writer = ShardWriter(folder, checkpoint.layers)
        for layer in range(checkpoint.layers):
            names = [name for name in checkpoint.names() if _layer_of(name) == layer]
            writer.write(layer, _shard(checkpoint, names))
            reporter.progress("write layer", layer + 1, checkpoint.layers)
        writer.write(checkpoint.layers, _shard(checkpoint, [n for n in checkpoint.names() if _layer_of(n) is None]))
        writer.finish()
        config = json.dumps(awq_config(checkpoint), indent=2, sort_keys=True)
        (folder / "config.json").write_text(config + "\n", encoding="utf-8")
        for pattern in COPIED:
            for path in sorted(checkpoint.folder.glob(pattern)):
                shutil.copyfile(path, folder / path.name)


def plan(checkpoint: Checkpoint) -> AutoawqExport:
    """Settle the export of a canonical checkpoint. Raises ConfigError for scales beyond float16."""
    notes = ["norms, embedding and head are float16, the type of this layout", *float16_note(checkpoint)]
    if checkpoint.symmetric:
        notes.append(f"the codes are symmetric, and this layout has zero points: each is {SYMMETRIC_ZERO}")
    if any(name.endswith(SCALE_SUFFIX) for name in checkpoint.names()):
        notes.append("the FP8 KV scales of the checkpoint are left out: this layout has none")
    return AutoawqExport(checkpoint, notes)


def awq_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return config.json, in the form that transformers 4 reads too: AutoAWQ and TensorRT-LLM stand on it."""
    return older_form(checkpoint.config, "float16") | {
        "quantization_config": {
            "quant_method": "awq",
            "version": "gemm",
            "bits": 4,
            "group_size": checkpoint.group_size,
            "zero_point": True,
            "modules_to_not_convert": None,
        },
    }


def _shard(checkpoint: Checkpoint, names: list[str]) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = {}
    for name in names:
        if name.endswith(PACKED):
            linear = name.removesuffix(PACKED)
            found = linear_tensors(checkpoint.linear(linear))
            tensors |= {f"{linear}.{suffix}": tensor for suffix, tensor in found.items()}
        elif not name.endswith(REPLACED):
            tensors[name] = cast(checkpoint.tensor(name), torch.float16, name)
    return tensors


def _layer_of(name: str) -> int | None:
    parts = name.split(".")
    return int(parts[2]) if name.startswith("model.layers.") else None
