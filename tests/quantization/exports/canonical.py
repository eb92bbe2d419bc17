"""Random canonical checkpoints, packed by the compressed-tensors library itself, and what they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import save_file

from trtpipe.quantization.grid import Quantized

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 96,
    "max_position_embeddings": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
    "tie_word_embeddings": False,
}
GROUP_SIZE = 64


@dataclass
class Memory:
    """What was put into the checkpoint. ``linears`` by full name, asymmetric codes as 0..15."""

    linears: dict[str, Quantized] = field(default_factory=dict)
    others: dict[str, torch.Tensor] = field(default_factory=dict)


def make(
    folder: Path,
    *,
    symmetric: bool = True,
    biases: tuple[str, ...] = (),
    group_size: int = GROUP_SIZE,
    **changes: Any,
) -> Memory:
    """Save a checkpoint, a shard a layer. ``biases``: linears that have one."""
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    config, memory = {**CONFIG, **changes}, Memory()
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    width = config.get("head_dim", hidden // heads)
    query, keys, middle = heads * width, config["num_key_value_heads"] * width, config["intermediate_size"]
    shapes = {
        "self_attn.q_proj": (query, hidden), "self_attn.k_proj": (keys, hidden), "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, query), "mlp.gate_proj": (middle, hidden), "mlp.up_proj": (middle, hidden),
        "mlp.down_proj": (hidden, middle),
    }  # fmt: skip
    shards = []
    for layer in range(config["num_hidden_layers"]):
        prefix, tensors = f"model.layers.{layer}", {}
        for name, shape in shapes.items():
            tensors |= _linear(memory, f"{prefix}.{name}", shape, symmetric, group_size)
            if name in biases:
                memory.others[f"{prefix}.{name}.bias"] = torch.randn(shape[0]).bfloat16()
        for norm in ("input_layernorm", "post_attention_layernorm"):
            memory.others[f"{prefix}.{norm}.weight"] = torch.randn(hidden).bfloat16()
        for side in "kv":
            memory.others[f"{prefix}.self_attn.{side}_scale"] = torch.rand(1) + 0.01
        shards.append(tensors | {name: t for name, t in memory.others.items() if name.startswith(f"{prefix}.")})
    rest = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        rest["lm_head.weight"] = (config["vocab_size"], hidden)
    shards.append({name: torch.randn(shape).bfloat16() for name, shape in rest.items()})
    memory.others |= shards[-1]
    _save(folder, shards, config, symmetric, group_size)
    return memory


def _linear(
    memory: Memory, name: str, shape: tuple[int, int], symmetric: bool, group_size: int
) -> dict[str, torch.Tensor]:
    groups = (shape[0], shape[1] // group_size)
    signed = torch.randint(-8, 8, shape, dtype=torch.int8)
    scales = (torch.rand(groups) * 0.02 + 0.001).bfloat16()
    packed = {
        f"{name}.weight_packed": pack_to_int32(signed, 4),
        f"{name}.weight_scale": scales,
        f"{name}.weight_shape": torch.tensor(shape),
    }
    if symmetric:
        memory.linears[name] = Quantized(signed, scales)
        return packed
    zeros = torch.randint(-8, 8, groups, dtype=torch.int8)
    memory.linears[name] = Quantized(signed + 8, scales, zeros + 8)
    return packed | {f"{name}.weight_zero_point": pack_to_int32(zeros, 4, packed_dim=0).contiguous()}


def _save(
    folder: Path, shards: list[dict[str, torch.Tensor]], config: dict[str, Any], symmetric: bool, group_size: int
) -> None:
    weight_map = {}
    for number, tensors in enumerate(shards):
        name = f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        save_file(tensors, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": group_size, "symmetric": symmetric}
    quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized",
                    "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantization}))
    (folder / "tokenizer.json").write_text("{}")
