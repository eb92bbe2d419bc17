"""A workspace around a tiny random model: `trtpipe calibrate` takes seconds there. It is too small for an engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from calibration.tiny import END, model_folder
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

EMPTY_SAFETENSORS = (2).to_bytes(8, "little") + b"{}"


def write_config(folder: Path, *, model: Path, prompts: Path, more: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trtpipe.yaml").write_text(
        f"model: {model}\nprompts:\n  files: [{prompts}]\n  allow_short: true\n"
        f"target: {REPOSITORY / 'engines/local.yaml'}\n{more}"
    )


def write_prompts(path: Path, rows: int = 12, times: int = 4) -> Path:
    path.write_text("".join(json.dumps({"prompt": f"question {row} " * times}) + "\n" for row in range(rows)))
    return path


def hollow_model(folder: Path) -> Path:
    """Write a model folder that looks right as long as nobody reads weights."""
    model_folder(folder)
    widths = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4}
    (folder / "config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "eos_token_id": END, **widths})
    )
    (folder / "model.safetensors").write_bytes(EMPTY_SAFETENSORS)
    return folder


def real_model(folder: Path, *, layers: int = 2) -> Path:
    """Write a model folder with random weights."""
    import tiny

    model_folder(folder)
    tiny.save(
        folder,
        vocab_size=END + 1,
        num_hidden_layers=layers,
        max_position_embeddings=512,
        eos_token_id=END,
        pad_token_id=0,
    )
    return folder
