"""How a decoder is shared out over ranks: widths of one rank, zero padding, and which TP sizes are legal.

T:tensorrt_llm/quantization/layers.py (WeightOnlyGroupwiseQuantLinear and its row form: both features, the global ones,
are rounded up to a multiple of max(64, group size) x TP, of 128 at least for W4A8), T:tensorrt_llm/layers/attention.py
(heads; KV heads rounded up), T:tensorrt_llm/models/*/model.py (pad_vocab_size to a multiple of TP),
T:tensorrt_llm/mapping.py (layers of a pipeline stage). `quantization/exports/` writes checkpoints by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trtpipe.engines.trtllm.capability import GROUPWISE
from trtpipe.engines.trtllm.shape import DecoderShape

GROUP_SIZES = (128, 64)  # TensorRT-LLM issue 988; W4A8 has no kernel for 64 (functional.py validate_group_size)
# TP goes over NVLink, within a node (T:docs/source/legacy/performance/performance-tuning-guide), and one node starts a
# release.
GPUS_PER_NODE = 8


def padded(width: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-width // multiple) * multiple


@dataclass(frozen=True)
class Division:
    """A model over ``tensor_parallel`` x ``pipeline_parallel`` ranks.

    ``pad``: the MLP may be widened with zeros; ``exported``: `trtpipe export` writes the checkpoint, which alone does.
    """

    shape: DecoderShape
    weights: str
    group_size: int
    tensor_parallel: int
    pipeline_parallel: int
    pad: bool
    exported: bool = True

    @property
    def widens(self) -> bool:
        """True where a width that the ranks cannot share becomes one that they can."""
        return self.pad and self.exported

    @property
    def step(self) -> int:
        """What a width must be a multiple of."""
        if self.weights not in GROUPWISE:
            return self.tensor_parallel
        return max(128 if self.weights == "w4a8_awq" else 64, self.group_size) * self.tensor_parallel

    @property
    def pads_itself(self) -> bool:
        """True where the engine widens all linears by itself: of AWQ it does so for AutoAWQ's layout only."""
        return self.weights == "w4a16_gptq"

    @cached_property
    def intermediate(self) -> int:
        """Width of the MLP in the engine."""
        widened = self.widens or self.pads_itself
        return padded(self.shape.intermediate, self.step) if widened else self.shape.intermediate

    @property
    def heads_of_rank(self) -> int:
        return -(-self.shape.heads // self.tensor_parallel)

    @property
    def kv_heads_of_rank(self) -> int:
        """KV heads of a rank: one at least, so that fewer heads than ranks are repeated."""
        return -(-self.shape.kv_heads // self.tensor_parallel)

    @property
    def qkv_width(self) -> int:
        """Rows of q, k and v of all ranks together, repeated KV heads counted as often as they stand."""
        heads = self.shape.heads + 2 * max(self.shape.kv_heads, self.tensor_parallel)
        return heads * self.shape.head_width

    @property
    def vocabulary(self) -> int:
        """Rows of embedding and head of all ranks together; the engine masks those past the model's own."""
        return padded(self.shape.vocabulary, self.tensor_parallel)

    def layers_of(self, stage: int) -> int:
        """Layers of a pipeline stage; the first stages hold one more where they do not divide."""
        count, more = divmod(self.shape.layers, self.pipeline_parallel)
        return count + (stage < more)

    def grouped_widths(self) -> dict[str, int]:
        """Return the widths that must be multiples of ``step``, by the words of a message."""
        widths = {"intermediate size": self.intermediate}
        if self.weights in GROUPWISE:
            widths |= {
                "hidden size": self.shape.hidden,
                "width of all attention heads": self.shape.heads * self.shape.head_width,
                "width of q, k and v": self.qkv_width,
            }
        return widths

    def unfit_widths(self) -> dict[str, int]:
        """Return the widths that the ranks cannot share in whole groups."""
        if self.pads_itself:
            return {}
        return {name: width for name, width in self.grouped_widths().items() if width % self.step}

    @property
    def is_legal(self) -> bool:
        shape, size = self.shape, self.tensor_parallel
        whole_groups = self.weights not in GROUPWISE or shape.intermediate % self.group_size == 0
        kv_fits = not (shape.kv_heads % size and size % shape.kv_heads)
        return whole_groups and kv_fits and shape.heads % size == 0 and not self.unfit_widths()


def legal_sizes(shape: DecoderShape, weights: str, *, pad: bool) -> dict[int, list[int]]:
    """Return the legal TP sizes within a node by group size; a format without groups has the same under all."""
    groups = (128,) if weights == "w4a8_awq" else GROUP_SIZES
    return {
        group: [size for size in range(1, GPUS_PER_NODE + 1) if Division(shape, weights, group, size, 1, pad).is_legal]
        for group in groups
    }


def legal_text(shape: DecoderShape, weights: str, *, pad: bool) -> str:
    """Return ``legal_sizes`` in words."""
    sizes = legal_sizes(shape, weights, pad=pad)
    words = {group: f"TP {', '.join(map(str, found)) or 'none'}" for group, found in sizes.items()}
    if weights not in GROUPWISE:
        return words[GROUP_SIZES[0]]
    return "; ".join(f"group {group}: {text}" for group, text in words.items())
