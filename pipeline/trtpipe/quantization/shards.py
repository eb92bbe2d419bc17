"""The files of a checkpoint written layer by layer: one shard a layer, then the rest, then the index."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

INDEX = "model.safetensors.index.json"
UNFINISHED = ".unfinished"


class ShardWriter:
    """Writes ``model-00001-of-000NN.safetensors`` and the index over all of them."""

    def __init__(self, folder: Path, layers: int) -> None:
        self.folder = folder
        self.shards = layers + 1
        # Not beside the shards: safetensors has temporary files of its own, which a killed run leaves behind.
        self._unfinished = folder / UNFINISHED

    def path(self, shard: int) -> Path:
        return self.folder / f"model-{shard + 1:05d}-of-{self.shards:05d}.safetensors"

    def write(self, shard: int, tensors: dict[str, torch.Tensor]) -> None:
        """Write a shard in one step: a file under its final name is whole."""
        path = self.path(shard)
        self._unfinished.mkdir(exist_ok=True)
        temporary = self._unfinished / path.name
        save_file(tensors, temporary, metadata={"format": "pt"})
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)

    def finish(self) -> None:
        """Write the index over all shards, and drop what killed runs left of them."""
        weight_map: dict[str, str] = {}
        size_bytes = 0
        for shard in range(self.shards):
            path = self.path(shard)
            size_bytes += path.stat().st_size
            with safe_open(path, framework="pt") as file:
                weight_map |= dict.fromkeys(file.keys(), path.name)
        index = {"metadata": {"total_size": size_bytes}, "weight_map": dict(sorted(weight_map.items()))}
        (self.folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(self._unfinished)
