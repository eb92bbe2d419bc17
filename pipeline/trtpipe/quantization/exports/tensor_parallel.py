"""How a model is shared out over tensor- and pipeline-parallel ranks.

Rules of TensorRT-LLM: `tensorrt_llm/layers/attention.py` (heads and KV heads of a rank), `tensorrt_llm/models/
convert_utils.py` (dup_kv_weight, split_embedding), `tensorrt_llm/mapping.py` (ranks, pp_layers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trtpipe.quantization.exports.trtllm_layout import FusedLinear, Width


@dataclass(frozen=True)
class ModelShape:
    """Widths of a decoder; ``head_width`` is stated or hidden / heads."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    layers: int

    @classmethod
    def of(cls, config: dict[str, Any]) -> ModelShape:
        """Read a Hugging Face config.json."""
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        return cls(
            hidden=hidden,
            intermediate=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_width=int(config.get("head_dim") or hidden // heads),
            vocabulary=int(config["vocab_size"]),
            layers=int(config["num_hidden_layers"]),
        )

    def widths(self, tensor_parallel: int) -> dict[Width, int]:
        """Return global widths as the engine has them: KV heads fewer than ranks are repeated, one a rank."""
        attention = self.heads * self.head_width
        return {
            "hidden": self.hidden,
            "attention": attention,
            "qkv": attention + 2 * max(self.kv_heads, tensor_parallel) * self.head_width,
            "intermediate": self.intermediate,
        }


@dataclass(frozen=True)
class Division:
    """A model over TP x PP ranks; ``intermediate`` includes the zero rows and columns added to it."""

    shape: ModelShape
    group_size: int
    tensor_parallel: int
    pipeline_parallel: int
    intermediate: int

    def linear_shape(self, linear: FusedLinear) -> tuple[int, int]:
        """Return [out, in] of one rank."""
        widths = self.shape.widths(self.tensor_parallel) | {"intermediate": self.intermediate}
        rows, columns = widths[linear.out_width], widths[linear.in_width]
        if linear.split == "rows":
            return rows // self.tensor_parallel, columns
        return rows, columns // self.tensor_parallel

    @property
    def vocabulary_rows(self) -> int:
        """Rows of embedding and head of one rank: the vocabulary rounded up to a multiple of TP.

        The engine keeps the true vocabulary size, so its sampling layers mask the rows added here.
        """
        return -(-self.shape.vocabulary // self.tensor_parallel)

    def kv_heads_of(self, rank: int) -> range:
        """Return the KV heads of a tensor-parallel rank."""
        if self.shape.kv_heads >= self.tensor_parallel:
            count = self.shape.kv_heads // self.tensor_parallel
            return range(rank * count, (rank + 1) * count)
        head = rank // (self.tensor_parallel // self.shape.kv_heads)
        return range(head, head + 1)

    def layers_of(self, stage: int) -> range:
        """Return the layers of a pipeline stage; the first stages hold one more where they do not divide."""
        count, more = divmod(self.shape.layers, self.pipeline_parallel)
        start = stage * count + min(stage, more)
        return range(start, start + count + (stage < more))
