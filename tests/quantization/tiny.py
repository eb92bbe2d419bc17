"""Tiny random causal LMs, saved as model folders."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

SHAPE = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 128,
    "tie_word_embeddings": True,
}
# What shows each architecture's own ways in a prompt of a few dozen tokens.
OWN: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": 12},
    "qwen2": {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1},
    "qwen3": {"head_dim": 32, "attention_bias": True},
    "phi3": {"sliding_window": 12, "pad_token_id": 0},
    "gemma2": {
        "head_dim": 32, "sliding_window": 12, "attention_bias": True, "query_pre_attn_scalar": 16,
        "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
    },
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": {
        "num_hidden_layers": 3, "mlp_only_layers": [1], "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 128, "shared_expert_intermediate_size": 192,
    },
    "qwen3_moe": {"head_dim": 32, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128},
}  # fmt: skip


def save(folder: Path, model_type: str = "llama", **changes: Any) -> Path:
    """Save a model with random weights, norms and biases: nothing is one or zero by chance of initialisation."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **{**SHAPE, **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    centre = 0.0 if model_type == "gemma2" else 1.0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.2 if "norm" in name or "bias" in name else 0.06
            parameter.normal_(centre if "norm" in name else 0.0, spread)
    model.save_pretrained(folder)
    return folder


def own(folder: Path, model_type: str) -> Path:
    """Save a model that has what is special in its architecture."""
    return save(folder, model_type, **OWN[model_type])


def model_of(folder: Path) -> Any:
    """Open a whole model in float64, computed by transformers in its plainest way."""
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager"
    ).eval()


def read_back(checkpoint: Path, model: Path, folder: Path) -> Path:
    """Save a compressed-tensors checkpoint as the model folder that its codes stand for: by upstream's unpacker."""
    tensors = {name: tensor for path in checkpoint.glob("*.safetensors") for name, tensor in load_file(path).items()}
    plain = {name: tensor for name, tensor in tensors.items() if not name.endswith(("_packed", "_scale", "_shape"))}
    for packed in [name for name in tensors if name.endswith(".weight_packed")]:
        weight = packed.removesuffix("_packed")
        rows, columns = tensors[f"{weight}_shape"].tolist()
        codes, scales = unpack_from_int32(tensors[packed], 4, torch.Size([rows, columns])), tensors[f"{weight}_scale"]
        plain[weight] = codes.float() * scales.float().repeat_interleave(columns // scales.shape[1], dim=1)
    folder.mkdir()
    save_file(plain, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(model / "config.json", folder / "config.json")
    return folder
