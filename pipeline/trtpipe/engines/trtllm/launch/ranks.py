"""How many processes an engine runs in, and whether a launch starts as many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtpipe.engines.trtllm.built.folder import EngineFolder

# Open MPI, PMIx (also under Slurm), MPICH: what a process started by one of them is told
STARTED_BY_MPI = ("OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE")


@dataclass(frozen=True)
class Ranks:
    """The mapping of an engine's config.json: one process and one GPU a rank."""

    tensor_parallel: int
    pipeline_parallel: int

    @classmethod
    def of(cls, engine: EngineFolder) -> Ranks:
        return cls(engine.tensor_parallel, engine.world_size // engine.tensor_parallel)

    @property
    def count(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel

    def __str__(self) -> str:
        return f"{self.count} ranks (TP {self.tensor_parallel} x PP {self.pipeline_parallel})"


def require(ranks: Ranks, asked: int | None, environment: Mapping[str, str]) -> None:
    """Raise UsageFault where a person asks for another number of ranks than the engine has, or starts them himself.

    TensorRT-LLM itself only asserts `mpiSize == tp * pp`, once in each rank and after it has begun to load.
    """
    if asked is not None and asked != ranks.count:
        raise UsageFault(
            f"the engine has {ranks}, and {asked} were asked for",
            where="--ranks",
            fix="leave --ranks out: the number is read from engine/config.json",
        )
    started = next((environment[name] for name in STARTED_BY_MPI if name in environment), None)
    if started is not None:
        raise UsageFault(
            f"the engine has {ranks}, and MPI has started {started} of this launcher",
            where="mpirun",
            fix="start it once and without mpirun or srun: it starts the ranks itself",
        )
