"""A TensorRT-LLM `W4A16_AWQ` checkpoint read back as the model's own layers: what ``exports.trtllm_tensors`` divides.

The weights are what the engine multiplies by: codes times scales, times the input's scale that ModelOpt may have left.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from trtpipe.core.sharing import Decoder
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.exports.tensor_parallel import Division
from trtpipe.quantization.exports.trtllm_layout import LINEARS, NORMS, FusedLinear
from trtpipe.quantization.exports.trtllm_tensors import HEAD, OUT_EMBEDDING, OUT_NORM
from trtpipe.quantization.grid import Quantized


class RankFiles:
    """The files of all ranks of a checkpoint whose keys and names have been compared with the plan."""

    def __init__(self, folder: Path, shape: Decoder) -> None:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        mapping = config["mapping"]
        self.shape = shape
        self.division = Division(
            shape,
            config["quantization"]["group_size"],
            mapping["tp_size"],
            mapping["pp_size"],
            config["intermediate_size"],
        )
        self._parallel_embedding = bool(config.get("use_parallel_embedding"))
        opened = ExitStack()
        count = mapping["tp_size"] * mapping["pp_size"]
        self._files = [
            opened.enter_context(safe_open(folder / f"rank{rank}.safetensors", framework="pt")) for rank in range(count)
        ]

    def layer(self, index: int) -> dict[str, torch.Tensor]:
        """Return a decoder layer's tensors, float32, by their Hugging Face names within the layer."""
        stage = next(
            stage for stage in range(self.division.pipeline_parallel) if index in self.division.layers_of(stage)
        )
        prefix = f"transformer.layers.{index - self.division.layers_of(stage).start}"
        found = {f"{theirs}.weight": self._one(stage, f"{prefix}.{name}.weight") for name, theirs in NORMS.items()}
        for linear in LINEARS:
            name = f"{prefix}.{linear.name}"
            found |= self._sources(linear, [self._weight(stage, rank, name) for rank in self._ranks], "weight")
            if self._has(stage, f"{name}.bias"):
                biases = [self._tensor(stage, rank, f"{name}.bias") for rank in self._ranks]
                found |= self._sources(linear, biases, "bias")
        return found

    def embedding(self) -> torch.Tensor:
        if not self._parallel_embedding:
            return self._one(0, OUT_EMBEDDING)
        return self._rows(0, OUT_EMBEDDING)

    def norm(self) -> torch.Tensor:
        return self._one(self.division.pipeline_parallel - 1, OUT_NORM)

    def head(self) -> torch.Tensor:
        last = self.division.pipeline_parallel - 1
        return self._rows(last, HEAD) if self._has(last, HEAD) else self.embedding()

    @property
    def _ranks(self) -> range:
        return range(self.division.tensor_parallel)

    def _weight(self, stage: int, rank: int, name: str) -> torch.Tensor:
        codes = nibbles.unpack_row_pairs(self._file(stage, rank).get_tensor(f"{name}.weight"))
        weight = Quantized(codes, self._tensor(stage, rank, f"{name}.weights_scaling_factor")).weight()
        return weight * self._tensor(stage, rank, f"{name}.prequant_scaling_factor")

    def _sources(self, linear: FusedLinear, shares: list[torch.Tensor], kind: str) -> dict[str, torch.Tensor]:
        """Put the ranks' shares of a linear together and apart again into the model's own; filling is cut off."""
        if linear.split == "columns":
            whole = shares[0] if kind == "bias" else torch.cat(shares, dim=1)[:, : self._width(linear)]
            return {f"{linear.sources[0]}.{kind}": whole}
        if linear.out_width != "qkv":
            return {f"{linear.sources[0]}.{kind}": torch.cat(shares)[: self.shape.intermediate]}
        width, ranks = self.shape.head_width, self.division.tensor_parallel
        queries = self.shape.heads // ranks * width
        keys = len(self.division.kv_heads_of(0)) * width
        apart = [share.split([queries, keys, keys]) for share in shares]
        repeated = max(1, ranks // self.shape.kv_heads)
        steps = (1, repeated, repeated)
        return {
            f"{source}.{kind}": torch.cat([parts[place] for parts in apart[::step]])
            for place, (source, step) in enumerate(zip(linear.sources, steps, strict=True))
        }

    def _width(self, linear: FusedLinear) -> int:
        return (
            self.shape.intermediate if linear.in_width == "intermediate" else self.shape.heads * self.shape.head_width
        )

    def _rows(self, stage: int, name: str) -> torch.Tensor:
        return torch.cat([self._tensor(stage, rank, name) for rank in self._ranks])[: self.shape.vocabulary]

    def _one(self, stage: int, name: str) -> torch.Tensor:
        return self._tensor(stage, 0, name)

    def _tensor(self, stage: int, rank: int, name: str) -> torch.Tensor:
        found: torch.Tensor = self._file(stage, rank).get_tensor(name)
        return found.float()

    def _has(self, stage: int, name: str) -> bool:
        return name in self._file(stage, 0).keys()  # noqa: SIM118 - the file is no mapping

    def _file(self, stage: int, rank: int) -> Any:
        return self._files[stage * self.division.tensor_parallel + rank]
