"""How many ranks are built at once: one that is killed for lack of memory costs the whole build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.memory import Memory

GIB = 1 << 30
# A log in TensorRT-LLM issue 2324: 40,291 MiB of host memory at the peak for a rank of 19,386 MiB. An estimate for
# others, with room.
HOST_BYTES_PER_WEIGHT_BYTE = 2.5
HOST_BASE_BYTES = 4 * GIB


def bytes_of_worker(memory: Memory) -> int:
    """Return the host memory that building the largest rank takes, in bytes: an estimate."""
    largest = max(stage.total_bytes for stage in memory.weights)
    return int(largest * HOST_BYTES_PER_WEIGHT_BYTE) + HOST_BASE_BYTES


def choose(ranks: int, each_bytes: int, free_bytes: int) -> tuple[int, str]:
    """Return how many workers, and why. Raises EnvironmentUnfit where the memory does not hold one."""
    holds = free_bytes // each_bytes
    need, free = f"about {each_bytes / GIB:.1f} GiB", f"{free_bytes / GIB:.1f} GiB of host memory are free"
    if holds < 1:
        raise EnvironmentUnfit(
            f"building one rank takes {need}, and {free}",
            where="/proc/meminfo",
            fix="free memory, use a machine with more, or build_workers: 1 in the target if you know better",
        )
    if holds >= ranks:
        return ranks, f"{ranks} workers: each takes {need}, {free}"
    return holds, f"{holds} workers for {ranks} ranks: each takes {need}, {free}"
