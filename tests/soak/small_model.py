"""A model that a slow machine gets through quickly: eight narrow layers of random weights, the sample's tokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import tiny

from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.sample.stage import stage

LAYERS = 8
# 64: the narrowest head that the engine takes; the tokens' numbers are the sample's.
SHAPE = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2}
FROM_SAMPLE = ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")


def write(folder: Path, downloads: Path) -> Path:
    """Write the model folder and return it; ``downloads`` keeps the sample's file, which is fetched where it lacks."""
    given = Runner(Store(folder.with_name("sample")), Silent()).obtain(stage(downloads)).path
    tokens = json.loads((given / "config.json").read_text("utf-8"))
    tiny.save(
        folder,
        num_hidden_layers=LAYERS,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        dtype="bfloat16",
        **SHAPE,
        **{name: tokens[name] for name in FROM_SAMPLE if name in tokens},
    )
    for path in given.glob("*token*.json"):
        shutil.copyfile(path, folder / path.name)
    return folder
