"""The files of a checkpoint written layer by layer: one shard a layer, then the rest, then the index."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

INDEX = "model.safetensors.index.json"


class ShardWriter:
    """Writes ``model-00001-of-000NN.safetensors`` and keeps what a killed run needs to go on.

    Of several ranks only the first one writes shards and reports; each keeps the activations of its own prompts.
    """

    def __init__(self, folder: Path, layers: int, *, rank: int = 0, ranks: int = 1) -> None:
        self.folder = folder
        self.shards = layers + 1
        self._rank = rank
        self._of_rank = f"{rank}-of-{ranks}"
        self.progress = folder / ".progress"
        self.progress.mkdir(exist_ok=True)

    def path(self, shard: int) -> Path:
        return self.folder / f"model-{shard + 1:05d}-of-{self.shards:05d}.safetensors"

    def write(self, shard: int, tensors: dict[str, torch.Tensor]) -> None:
        if self._rank == 0:
            _save(tensors, self.path(shard))

    def keep(self, layer: int, hidden: list[torch.Tensor], report: dict[str, object]) -> None:
        """Note that ``layer`` is finished: its report, and the inputs of the next layer."""
        if self._rank == 0:
            report_file = self.progress / f"layer-{layer:03d}.json"
            report_file.write_text(json.dumps(report), encoding="utf-8")
        _save({str(index): batch for index, batch in enumerate(hidden)}, self._hidden(layer + 1))
        # The one before stays: a rank may be killed one layer earlier.
        self._hidden(layer - 1).unlink(missing_ok=True)

    def _hidden(self, layer: int) -> Path:
        return self.progress / f"hidden-{layer:03d}-{self._of_rank}"

    def kept_layer(self) -> int:
        """Return the layer whose inputs are kept of a killed run of as many ranks; 0 where there is none."""
        kept = sorted(self.progress.glob(f"hidden-???-{self._of_rank}"))
        return int(kept[-1].name.split("-")[1]) if kept else 0

    def resume(self, layer: int) -> tuple[list[torch.Tensor], list[dict[str, object]]]:
        """Return the kept inputs of a layer, and the reports of those before it."""
        batches = load_file(self._hidden(layer))
        reports = [
            json.loads((self.progress / f"layer-{index:03d}.json").read_text("utf-8"))
            for index in range(layer if self._rank == 0 else 0)
        ]
        return [batches[str(index)] for index in range(len(batches))], reports

    def finish(self) -> None:
        """Write the index over all shards and drop the progress files."""
        if self._rank:
            return
        weight_map: dict[str, str] = {}
        size_bytes = 0
        for shard in range(self.shards):
            path = self.path(shard)
            size_bytes += path.stat().st_size
            with safe_open(path, framework="pt") as file:
                weight_map |= dict.fromkeys(file.keys(), path.name)
        index = {"metadata": {"total_size": size_bytes}, "weight_map": dict(sorted(weight_map.items()))}
        (self.folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        for path in self.progress.iterdir():
            path.unlink()
        self.progress.rmdir()


def _save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file in one step: a file under its final name is whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(tensors, temporary, metadata={"format": "pt"})
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
