"""How TensorRT-LLM shares a dense decoder out over ranks: the one truth of the plan of an engine and of the export.

T:tensorrt_llm/quantization/layers.py (WeightOnlyGroupwiseQuantLinear and its row form: both features, the global ones,
are rounded up to a multiple of max(64, group size) x TP, and the checkpoint must have that shape),
T:tensorrt_llm/layers/attention.py (heads), T:tensorrt_llm/models/convert_utils.py (dup_kv_weight),
T:tensorrt_llm/models/*/model.py (pad_vocab_size), T:tensorrt_llm/mapping.py (layers of a pipeline stage),
cpp/include/tensorrt_llm/runtime/modelConfig.h (getVocabSizePadded).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

Width = Literal["intermediate", "hidden", "attention", "qkv"]
GROUP_SIZES = (128, 64)  # TensorRT-LLM issue 988; layers.py checks it with validate_group_size


def padded(width: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-width // multiple) * multiple


def group_step(group_size: int, tensor_parallel: int, *, least: int = 64) -> int:
    """Return what a width must be a multiple of, so that every rank holds whole groups. ``least``: of the kernel."""
    return max(least, group_size) * tensor_parallel


@dataclass(frozen=True)
class Decoder:
    """Widths of a dense decoder; ``head_width`` is stated or hidden / heads."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    layers: int

    @classmethod
    def from_config(cls, config: dict[str, Any], **more: Any) -> Self:
        """Read a Hugging Face config.json. ``more``: what a subclass has besides."""
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        return cls(
            hidden=hidden,
            intermediate=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_width=int(config.get("head_dim") or hidden // heads),
            vocabulary=int(config["vocab_size"]),
            layers=int(config["num_hidden_layers"]),
            **more,
        )


class Shared:
    """A decoder over ``tensor_parallel`` x ``pipeline_parallel`` ranks; whoever inherits it has these three as fields.

    ``intermediate`` is given where it counts, because it may have been widened with zeros.
    """

    shape: Decoder
    tensor_parallel: int
    pipeline_parallel: int

    @property
    def heads_left_over(self) -> int:
        """Attention heads that whole ranks cannot share: 0 where it is legal."""
        return self.shape.heads % self.tensor_parallel

    @property
    def kv_heads_fit(self) -> bool:
        """True where KV heads can be shared, or repeated where ranks are more."""
        return not (self.shape.kv_heads % self.tensor_parallel and self.tensor_parallel % self.shape.kv_heads)

    @property
    def qkv_width(self) -> int:
        """Rows of q, k and v of all ranks together, repeated KV heads counted as often as they stand."""
        heads = self.shape.heads + 2 * max(self.shape.kv_heads, self.tensor_parallel)
        return heads * self.shape.head_width

    @property
    def vocabulary(self) -> int:
        """Rows of embedding and head of all ranks together; the engine masks those past the model's own."""
        return padded(self.shape.vocabulary, self.tensor_parallel)

    @property
    def runtime_vocabulary(self) -> int:
        """Width of the runtime's logits: it pads to a multiple of TP x PP, and must come to the head's own."""
        return padded(self.shape.vocabulary, self.tensor_parallel * self.pipeline_parallel)

    def widths(self, intermediate: int) -> dict[Width, int]:
        """Return the widths of the quantized linears, of all ranks together."""
        return {
            "intermediate": intermediate,
            "hidden": self.shape.hidden,
            "attention": self.shape.heads * self.shape.head_width,
            "qkv": self.qkv_width,
        }

    def layers_of(self, stage: int) -> range:
        """Return the layers of a pipeline stage; the first stages hold one more where they do not divide."""
        count, more = divmod(self.shape.layers, self.pipeline_parallel)
        start = stage * count + min(stage, more)
        return range(start, start + count + (stage < more))
