"""How many tokens and sequences the KV cache of an engine holds.

From T:cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp (calculateFreeMemBytes, calculateMaxNumBlocks), stored text of
the 1.x line: the pool is the configured share of what is free once the engine is loaded; its tokens are rounded down,
its blocks up, and all ranks take the smallest number of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.capability import KV_BYTES

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmKvDtype
    from trtpipe.engines.trtllm.division import Division

MIB = 1 << 20
# Driver, CUDA context, cuBLAS and TensorRT of a GPU: T:docs/source/legacy/reference/memory.md shows a log in which an
# 80 GB GPU has 79.10 GiB in all and 0.76 GiB are gone beyond engine, activations and buffers; 2 GiB leave room.
RUNTIME_RESERVE_MIB = 2048
# NCCL's buffers and the workspace of all-reduce, where ranks talk to each other: an estimate, not measured.
COMMUNICATION_RESERVE_MIB = 1024
# Both from the one public report that states activation memory at two sizes (TensorRT-LLM 1.2.1, Qwen2.5-7B
# W4A16_AWQ, batch 1): 262 MB for 2048 tokens, 91 MB for 512. They hold for it; other models may differ.
HIDDEN_BUFFERS = 4
ACTIVATION_FLOOR_BYTES = 32 * MIB


@dataclass(frozen=True)
class Reserve:
    """Bytes of a GPU that neither weights nor KV cache can have."""

    runtime_bytes: int
    activation_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.runtime_bytes + self.activation_bytes


def runtime_reserve_mib(ranks: int) -> int:
    return RUNTIME_RESERVE_MIB + (COMMUNICATION_RESERVE_MIB if ranks > 1 else 0)


def activation_bytes(division: Division, *, max_num_tokens: int, max_batch_size: int) -> int:
    """Estimate the activations of a rank, which are fixed when the engine is built.

    T:docs/source/legacy/reference/memory.md: about linear in the tokens of a step, one layer's worth. Here a token has
    a few buffers of the hidden width, and of this rank's q, k, v and both inputs of the MLP's last linear, in 16 bit;
    a request has float32 logits over the whole vocabulary, in the engine and in the decoder.
    """
    shape, size = division.shape, division.tensor_parallel
    widths = HIDDEN_BUFFERS * shape.hidden + -(-(division.qkv_width + 2 * division.intermediate) // size)
    return ACTIVATION_FLOOR_BYTES + max_num_tokens * widths * 2 + max_batch_size * division.vocabulary * 4 * 2


def kv_bytes_per_token(division: Division, stage: int, kv_dtype: TensorrtLlmKvDtype) -> int:
    """Return 2 (keys and values) x layers x KV heads of a rank x head width x bytes of the type."""
    layers = len(division.layers_of(stage))
    return 2 * layers * division.kv_heads_of_rank * division.shape.head_width * KV_BYTES[kv_dtype]


@dataclass(frozen=True)
class Pool:
    """The KV cache of one type. ``bytes_per_token``: of the rank with most layers; ``tokens``: before rounding up."""

    kv_dtype: TensorrtLlmKvDtype
    bytes_per_token: int
    tokens: int
    blocks: int
    block_tokens: int

    def sequences(self, tokens: int) -> int:
        """Return how many sequences of so many tokens fit at once: each has whole blocks."""
        return self.blocks // -(-tokens // self.block_tokens)


def pool(
    division: Division, kv_dtype: TensorrtLlmKvDtype, *, free_bytes: list[int], share: float, block_tokens: int
) -> Pool:
    """Return the pool that every rank can hold. ``free_bytes``: of each pipeline stage, once the engine is loaded."""
    per_token = [kv_bytes_per_token(division, stage, kv_dtype) for stage in range(division.pipeline_parallel)]
    tokens = min(int(max(free, 0) * share) // each for free, each in zip(free_bytes, per_token, strict=True))
    return Pool(kv_dtype, max(per_token), tokens, -(-tokens // block_tokens), block_tokens)
