"""How an engine of any format is shared out over ranks: zero padding, and which TP sizes are legal.

The rules are `core/sharing.py`, by which `quantization/exports/` writes checkpoints too; here is what formats other
than W4A16_AWQ add, from T:tensorrt_llm/quantization/layers.py (W4A8: multiples of 128 at least).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trtpipe.core.sharing import GROUP_SIZES, Shared, Width, group_step, padded
from trtpipe.engines.trtllm.capability import GROUPWISE
from trtpipe.engines.trtllm.shape import DecoderShape

# TP goes over NVLink, within a node (T:docs/source/legacy/performance/performance-tuning-guide), and one node starts a
# release.
GPUS_PER_NODE = 8


WORDS: dict[Width, str] = {
    "intermediate": "intermediate size",
    "hidden": "hidden size",
    "attention": "width of all attention heads",
    "qkv": "width of q, k and v",
}


@dataclass(frozen=True)
class Division(Shared):
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
        return group_step(self.group_size, self.tensor_parallel, least=128 if self.weights == "w4a8_awq" else 64)

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

    def grouped_widths(self) -> dict[str, int]:
        """Return the widths that must be multiples of ``step``, by the words of a message."""
        widths = self.widths(self.intermediate)
        return {WORDS[name]: widths[name] for name in WORDS if name == "intermediate" or self.weights in GROUPWISE}

    def unfit_widths(self) -> dict[str, int]:
        """Return the widths that the ranks cannot share in whole groups."""
        if self.pads_itself:
            return {}
        return {name: width for name, width in self.grouped_widths().items() if width % self.step}

    @property
    def is_legal(self) -> bool:
        whole_groups = self.weights not in GROUPWISE or self.shape.intermediate % self.group_size == 0
        return whole_groups and self.kv_heads_fit and not self.heads_left_over and not self.unfit_widths()


def legal_sizes(shape: DecoderShape, weights: str, *, pad: bool) -> dict[int, list[int]]:
    """Return the legal TP sizes within a node by group size; a format without groups has the same under all."""
    groups = (128,) if weights == "w4a8_awq" else GROUP_SIZES  # no kernel for 64: functional.py validate_group_size
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
