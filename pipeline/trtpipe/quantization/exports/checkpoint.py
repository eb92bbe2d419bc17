"""Read the canonical checkpoint (compressed-tensors, `pack-quantized`) one tensor at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.grid import SYMMETRIC, Quantized

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
READABLE = {"num_bits": 4, "type": "int", "strategy": "group"}


class Checkpoint:
    """Config and tensors of a checkpoint folder; only the shard of the last tensor asked for is open.

    Raises ConfigError where the folder is no int4 group-wise `pack-quantized` checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        weights = _weight_scheme(self.config, folder)
        self.group_size = int(weights["group_size"])
        self.symmetric = bool(weights["symmetric"])
        self._shards = _shards(folder)
        self._open: tuple[str, Any] = ("", None)

    @property
    def layers(self) -> int:
        return int(self.config["num_hidden_layers"])

    def names(self) -> list[str]:
        """Return all tensor names, shard by shard."""
        return sorted(self._shards, key=lambda name: (self._shards[name], name))

    def has(self, name: str) -> bool:
        return name in self._shards

    def tensor(self, name: str) -> torch.Tensor:
        found: torch.Tensor = self._shard(name).get_tensor(name)
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._shard(name).get_slice(name).get_shape())

    def rows(self, name: str, start: int, end: int) -> torch.Tensor:
        """Return rows of a matrix, those past its end as zeros."""
        stored: torch.Tensor = self._shard(name).get_slice(name)[start:end]
        return torch.nn.functional.pad(stored, (0, 0, 0, end - start - len(stored)))

    def linear(self, name: str) -> Quantized:
        """Return codes, scales and, where asymmetric, zero points of a linear (`model.layers.0.mlp.up_proj`)."""
        values = nibbles.unpack_columns(self.tensor(f"{name}.weight_packed"))
        scales = self.tensor(f"{name}.weight_scale")
        if self.symmetric:
            return Quantized(values.add_(SYMMETRIC[0]), scales)
        # packed along the rows: compressed_tensors/compressors/pack_quantized/base.py (packed_dim=0)
        zeros = nibbles.unpack_columns(self.tensor(f"{name}.weight_zero_point").T.contiguous()).T.contiguous()
        return Quantized(values, scales, zeros[: values.shape[0]])

    def kv_scales(self, layer: int) -> tuple[float, float]:
        """Return the scales of keys and values: not positive where one is missing."""
        names = (f"model.layers.{layer}.self_attn.{side}_scale" for side in "kv")
        key, value = (float(self.tensor(name)) if self.has(name) else 0.0 for name in names)
        return key, value

    def require_kv_scales(self) -> None:
        """Raise ConfigError where a layer has no positive, finite scales for an FP8 KV cache."""
        lacking = [layer for layer in range(self.layers) if not 0.0 < min(self.kv_scales(layer)) < float("inf")]
        if lacking:
            raise ConfigError(
                f"KV scales not applied: {len(lacking)} layers have none that is positive, first layer {lacking[0]}",
                where=str(self.folder),
                fix="calibrate again, or --kv-cache model: a KV cache in the model's own type",
            )

    def _shard(self, name: str) -> Any:
        if name not in self._shards:
            raise ConfigError(
                f"the checkpoint has no tensor `{name}`", where=str(self.folder), fix="use a complete checkpoint"
            )
        path = self.folder / self._shards[name]
        if self._open[0] != path.name:
            try:
                self._open = (path.name, safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as fault:
                raise ConfigError(
                    f"not a whole safetensors file: {fault}", where=str(path), fix="fetch or copy this file again"
                ) from None
        return self._open[1]


def _shards(folder: Path) -> dict[str, str]:
    index = folder / INDEX
    if index.is_file():
        return dict(json.loads(index.read_text("utf-8"))["weight_map"])
    with safe_open(folder / SINGLE, framework="pt") as file:
        return dict.fromkeys(file.keys(), SINGLE)


def _weight_scheme(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    found = config.get("quantization_config") or {}
    groups = list(found.get("config_groups", {}).values())
    weights: dict[str, Any] = groups[0]["weights"] if len(groups) == 1 else {}
    if found.get("format") != "pack-quantized" or any(weights.get(key) != value for key, value in READABLE.items()):
        raise ConfigError(
            "not an int4 group-wise checkpoint in the compressed-tensors layout `pack-quantized`",
            where=str(folder / "config.json"),
            fix="export from the checkpoint that the calibration stage made",
        )
    return weights
