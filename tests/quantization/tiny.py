"""Tiny random causal LMs, saved as model folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
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


def save(folder: Path, model_type: str = "llama", **changes: Any) -> Path:
    """Save a model with random weights, norms and biases: nothing is one or zero by chance of initialisation."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **{**SHAPE, **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.2 if "norm" in name or "bias" in name else 0.06
            parameter.normal_(1.0 if "norm" in name else 0.0, spread)
    model.save_pretrained(folder)
    return folder
