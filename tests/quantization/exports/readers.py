"""Read each layout back in numpy, by its description alone: nothing here comes from the package or from torch.

Every reader returns the linears under their Hugging Face names as (codes, scales): codes are code - zero point, so that
symmetric and asymmetric layouts can be compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Linears = dict[str, tuple[Array, Array]]


def safetensors(path: Path) -> dict[str, Array]:
    """Read a file; bfloat16 comes as float32."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, start = json.loads(data[8 : 8 + length]), 8 + length
    kinds = {"I8": "i1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "BF16": "<u2"}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        flat = np.frombuffer(data[start + first : start + last], dtype=kinds[entry["dtype"]])
        if entry["dtype"] == "BF16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def folder(path: Path) -> dict[str, Array]:
    return {name: tensor for file in sorted(path.glob("*.safetensors")) for name, tensor in safetensors(file).items()}


def compressed_tensors(path: Path) -> Linears:
    found: Linears = {}
    tensors = folder(path)
    for name in [name.removesuffix(".weight_packed") for name in tensors if name.endswith(".weight_packed")]:
        values = _nibbles(tensors[f"{name}.weight_packed"], range(8))
        scales = tensors[f"{name}.weight_scale"]
        zeros = np.full(scales.shape, 8)
        if f"{name}.weight_zero_point" in tensors:
            zeros = _nibbles(tensors[f"{name}.weight_zero_point"].T, range(8)).T
        found[name] = (values - np.repeat(zeros, values.shape[1] // scales.shape[1], axis=1), scales)
    return found


def autoawq(path: Path) -> Linears:
    found: Linears = {}
    tensors = folder(path)
    order = (0, 4, 1, 5, 2, 6, 3, 7)  # where in a word columns 0..7 are
    for name in [name.removesuffix(".qweight") for name in tensors if name.endswith(".qweight")]:
        values, zeros = _nibbles(tensors[f"{name}.qweight"], order), _nibbles(tensors[f"{name}.qzeros"], order)
        scales = tensors[f"{name}.scales"]
        assert scales.dtype == np.float16
        codes = values - np.repeat(zeros, len(values) // len(zeros), axis=0)
        found[name] = (codes.T, scales.astype(np.float32).T)
    return found


def _nibbles(packed: Array, places: Any) -> Array:
    words = packed.astype(np.int64) & 0xFFFFFFFF
    return np.stack([(words >> (4 * place)) & 15 for place in places], axis=2).reshape(len(words), -1)


def trtllm(path: Path) -> tuple[Linears, dict[str, Array]]:
    """Put the rank files together again. Returns the linears and everything else under this layout's names."""
    config = json.loads((path / "config.json").read_text())
    size, stages = config["mapping"]["tp_size"], config["mapping"]["pp_size"]
    linears: Linears = {}
    others: dict[str, Array] = {}
    first = 0
    for stage in range(stages):
        ranks = [safetensors(path / f"rank{stage * size + rank}.safetensors") for rank in range(size)]
        layers = 1 + max(int(name.split(".")[2]) for name in ranks[0] if ".layers." in name)
        for layer in range(layers):
            linears |= _layer(config, ranks, f"transformer.layers.{layer}", f"model.layers.{first + layer}")
        for name in ranks[0]:
            if name.endswith(("lm_head.weight", "vocab_embedding.weight")):
                others[name] = np.concatenate([rank[name] for rank in ranks])
            elif not name.endswith(("weights_scaling_factor", ".weight")) or "norm" in name or "ln_f" in name:
                where = name.split(".")
                if where[1] == "layers":
                    where[2] = str(first + int(where[2]))
                others[".".join(where)] = (
                    np.stack([rank[name] for rank in ranks]) if ".bias" in name else ranks[0][name]
                )
        first += layers
    return linears, others


def _layer(config: dict[str, Any], ranks: list[dict[str, Array]], prefix: str, hf: str) -> Linears:
    def shares(linear: str) -> list[tuple[Array, Array]]:
        name = f"{prefix}.{linear}"
        return [(_row_pairs(rank[f"{name}.weight"]), rank[f"{name}.weights_scaling_factor"]) for rank in ranks]

    def joined(parts: list[tuple[Array, Array]], axis: int) -> tuple[Array, Array]:
        return np.concatenate([part[0] for part in parts], axis), np.concatenate([part[1] for part in parts], axis)

    query = config["num_attention_heads"] // len(ranks) * config["head_size"]
    qkv = shares("attention.qkv")
    keys = (len(qkv[0][0]) - query) // 2
    parts = {
        side: [(codes[start:end], scales[start:end]) for codes, scales in qkv]
        for side, start, end in (("q", 0, query), ("k", query, query + keys), ("v", query + keys, query + 2 * keys))
    }
    copies = max(1, len(ranks) // config["num_key_value_heads"])
    for side in "kv":
        for rank in range(len(ranks)):
            assert np.array_equal(parts[side][rank][0], parts[side][rank // copies * copies][0])
        parts[side] = parts[side][::copies]
    found = {f"{hf}.self_attn.{side}_proj": joined(part, 0) for side, part in parts.items()}
    found[f"{hf}.self_attn.o_proj"] = joined(shares("attention.dense"), 1)
    found[f"{hf}.mlp.gate_proj"] = joined(shares("mlp.fc"), 0)
    found[f"{hf}.mlp.up_proj"] = joined(shares("mlp.gate"), 0)
    found[f"{hf}.mlp.down_proj"] = joined(shares("mlp.proj"), 1)
    return found


def _row_pairs(packed: Array) -> Array:
    """Byte [j, c] holds rows 2j (low nibble) and 2j + 1 (high), two's complement."""
    assert packed.dtype == np.int8
    low, high = packed.view(np.uint8) & 15, packed.view(np.uint8) >> 4
    values = np.stack([low, high], axis=1).reshape(-1, packed.shape[1]).astype(np.int64)
    return np.where(values > 7, values - 16, values)
