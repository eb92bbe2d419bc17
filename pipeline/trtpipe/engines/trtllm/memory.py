"""A GPU's memory under a plan: weights, reserve, what is left, and the KV cache of each type in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm import capacity, weights
from trtpipe.engines.trtllm.capability import KV_DTYPES
from trtpipe.engines.trtllm.capacity import MIB, Pool, Reserve

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmKvDtype, TensorrtLlmTarget
    from trtpipe.engines.trtllm.division import Division
    from trtpipe.engines.trtllm.gpus import Gpu
    from trtpipe.engines.trtllm.limits import Limits
    from trtpipe.engines.trtllm.weights import RankWeights

GIB = 1 << 30


@dataclass(frozen=True)
class Memory:
    """``weights``: of a rank, by pipeline stage; ``pools``: by KV type, all under the same limits."""

    gpu_bytes: int
    weights: tuple[RankWeights, ...]
    reserve: Reserve
    pools: dict[TensorrtLlmKvDtype, Pool]

    @property
    def free_bytes(self) -> list[int]:
        """What the KV cache and the rest share, by pipeline stage; below 0 where the engine does not fit."""
        return [self.gpu_bytes - stage.total_bytes - self.reserve.total_bytes for stage in self.weights]

    @property
    def words(self) -> str:
        """Say what the fullest GPU holds."""
        parts = {
            "weights": max(stage.total_bytes for stage in self.weights),
            "activations": self.reserve.activation_bytes,
            "runtime": self.reserve.runtime_bytes,
        }
        return ", ".join(f"{name} {size / GIB:.2f} GiB" for name, size in parts.items())

    def document(self) -> dict[str, Any]:
        return {
            "gpu_bytes": self.gpu_bytes,
            "weights_per_rank": [stage.document() for stage in self.weights],
            "activation_bytes": self.reserve.activation_bytes,
            "runtime_bytes": self.reserve.runtime_bytes,
            "free_bytes": self.free_bytes,
        }


def of(division: Division, target: TensorrtLlmTarget, gpu: Gpu, limits: Limits) -> Memory:
    ranks = target.tensor_parallel * target.pipeline_parallel
    runtime = target.runtime_reserve_mib
    reserve = Reserve(
        runtime_bytes=(capacity.runtime_reserve_mib(ranks) if runtime == "auto" else runtime) * MIB,
        activation_bytes=capacity.activation_bytes(
            division, max_num_tokens=limits.num_tokens, max_batch_size=limits.batch_size
        ),
    )
    stages = tuple(weights.of_stage(division, stage) for stage in range(target.pipeline_parallel))
    empty = Memory(gpu.memory_mib * MIB, stages, reserve, {})
    pools = {
        kv: capacity.pool(
            division,
            kv,
            free_bytes=empty.free_bytes,
            share=target.kv_memory_share,
            block_tokens=target.kv_block_tokens,
        )
        for kv in KV_DTYPES
    }
    return Memory(empty.gpu_bytes, stages, reserve, pools)
