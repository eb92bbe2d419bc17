"""Bytes of a rank's weights, as the engine holds them.

A 4-bit linear [out, in] has out x in / 2 bytes of codes, a 16-bit scale a group and output, as many zero points where
the format has them, and for W4A16_AWQ one 16-bit input scale a column. Embedding and head stay in 16 bit and are split
over the TP ranks (`use_parallel_embedding`, as `trtpipe export` writes it; ModelOpt's own export repeats the embedding
on every rank). A tied head is counted: the checkpoint holds it twice. From T:tensorrt_llm/quantization/layers.py and
T:docs/source/legacy/architecture/checkpoint.md. Held against a public report of TensorRT-LLM 1.2.1: 5306 MB of GPU
memory at the build of Qwen2.5-7B in W4A16_AWQ on one GPU, where this says 5290 MiB.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.capability import GROUPWISE

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.division import Division

BYTES_16_BIT = 2


@dataclass(frozen=True)
class RankWeights:
    """Bytes of one rank of a pipeline stage. ``unquantized``: embedding, head, norms, biases."""

    linear_bytes: int
    scale_bytes: int
    unquantized_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.linear_bytes + self.scale_bytes + self.unquantized_bytes

    def document(self) -> dict[str, int]:
        return asdict(self) | {"total_bytes": self.total_bytes}


def of_stage(division: Division, stage: int) -> RankWeights:
    """Return what each TP rank of a pipeline stage holds."""
    shape, layers = division.shape, len(division.layers_of(stage))
    linears = _linears(division)
    elements = sum(rows * columns for rows, columns in linears)
    bits = {"model": 16, "fp8": 8}.get(division.weights, 4)
    vocabulary_bytes = division.vocabulary // division.tensor_parallel * shape.hidden * BYTES_16_BIT
    vocabularies = (stage == 0) + (stage == division.pipeline_parallel - 1)
    values = layers * 2 * shape.hidden + shape.hidden
    if shape.biased_qkv:
        values += layers * linears[0][0]
    return RankWeights(
        linear_bytes=layers * elements * bits // 8,
        scale_bytes=layers * sum(_scale_values(division, *linear) for linear in linears) * BYTES_16_BIT,
        unquantized_bytes=vocabularies * vocabulary_bytes + values * BYTES_16_BIT,
    )


def _linears(division: Division) -> list[tuple[int, int]]:
    """Return [out, in] of a rank's linears of one layer: qkv, dense, gate, up, down."""
    shape, size = division.shape, division.tensor_parallel
    hidden = shape.hidden
    if division.pads_itself:
        hidden = -(-hidden // division.step) * division.step
    inner = -(-division.intermediate // size)
    qkv = (division.heads_of_rank + 2 * division.kv_heads_of_rank) * shape.head_width
    return [
        (qkv, hidden), (hidden, division.heads_of_rank * shape.head_width), (inner, hidden), (inner, hidden),
        (hidden, inner),
    ]  # fmt: skip


def _scale_values(division: Division, rows: int, columns: int) -> int:
    if division.weights not in GROUPWISE:
        return 0
    scales = rows * -(-columns // division.group_size)
    return 2 * scales if division.weights == "w4a16_gptq" else scales + columns
