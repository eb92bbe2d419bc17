"""The line that starts an engine in leader mode: one tritonserver a rank, of which rank 0 answers requests.

As get_cmd in triton_backend/scripts/launch_triton_server.py of NVIDIA/TensorRT-LLM makes it (stored text of the 1.x
line), an argument at a time, with these differences: ports once and not twice, no empty last part after the last colon,
`--tag-output`, which tells ranks apart in the log, and a prefix of shared memory that names its launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePath

MPIRUN = "mpirun"
TRITON = "/opt/tritonserver/bin/tritonserver"  # where the image has it
ENGINE_MODEL = "tensorrt_llm"  # the only model that ranks above 0 load
EXIT_TIMEOUT_S = 20  # requests in flight may end within this time after a stop


@dataclass(frozen=True)
class Ports:
    """Where rank 0 listens; upstream's defaults."""

    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002

    def by_purpose(self) -> dict[str, int]:
        return {"http": self.http, "grpc": self.grpc, "metrics": self.metrics}


def leader(
    ranks: int,
    repository: PurePath,
    ports: Ports,
    *,
    shm_prefix: str,
    program: str = TRITON,
    listening: Sequence[str] = (),
) -> list[str]:
    """Return the words of the line.

    ``shm_prefix``: no other server of this machine may have the same. ``listening``: Triton's options for the
    addresses; without them it is on all, as upstream's, for a container that shows its ports by itself.
    """
    line = [MPIRUN, "--allow-run-as-root", "--tag-output"]
    for rank in range(ranks):
        line += [] if rank == 0 else [":"]
        line += ["-n", "1", program, *_arguments(rank, repository, ports, shm_prefix), *listening]
    return line


def _arguments(rank: int, repository: PurePath, ports: Ports, shm_prefix: str) -> list[str]:
    alone = ["--model-control-mode=explicit", f"--load-model={ENGINE_MODEL}"]
    return [
        f"--model-repository={repository}",
        f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
        f"--grpc-port={ports.grpc}",
        f"--http-port={ports.http}",
        f"--metrics-port={ports.metrics}",
        *(alone if rank else []),
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}{rank}_",
    ]
