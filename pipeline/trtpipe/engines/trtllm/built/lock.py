"""Where an engine may run: written when it is built, enforced before it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from trtpipe.core import documents
from trtpipe.core.store import write_json
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.engines.trtllm.built import lock_rules
from trtpipe.errors import ConfigError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.build.releases import Release
    from trtpipe.engines.trtllm.built.lock_rules import Host

LOCK = "engine.lock.json"


class Lock(BaseModel):
    """The content of engine.lock.json. TensorRT refuses a plan of another version or GPU type; this says so first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    tensorrt_llm: str
    tensorrt: str
    backend: Literal["tensorrtllm"] = Field(default="tensorrtllm", description="Triton's backend that serves it.")
    container_image: str | None = Field(description="Image that built it; null: the host's own installation.")
    container_digest: str | None = Field(description="sha256 of the image in its repository; null: unknown.")
    driver_floor: int = Field(description="Oldest major version of NVIDIA's driver that the release's CUDA runs on.")
    driver_at_build: str
    gpu_name: str = Field(description="As the driver calls it.")
    gpu_memory_mib: int
    sm_by_rank: list[int] = Field(min_length=1, description="Compute capability x 10 of the GPU that built each rank.")


def write(folder: Path, lock: Lock) -> None:
    write_json(folder / LOCK, lock.model_dump())


def read(folder: Path) -> Lock:
    """Read an engine's lock. Raises ConfigError where there is none, or it is damaged."""
    path = folder / LOCK
    try:
        return documents.read(path, Lock, "lock", "build the engine again")
    except FileNotFoundError:
        raise ConfigError(
            "the engine has no lock: nothing says where it may run",
            where=str(path),
            fix="build it with `trtpipe build-engine`, which writes one",
        ) from None


def release_of(lock: Lock, folder: Path) -> Release:
    """Return the release that built an engine. Raises ConfigError where an edited or foreign lock names another."""
    found = RELEASES.get(lock.tensorrt_llm)
    if found is None:
        raise ConfigError(
            f"the lock names TensorRT-LLM {lock.tensorrt_llm}, a version that this program does not know",
            where=f"{folder / LOCK} tensorrt_llm",
            fix=f"known: {', '.join(RELEASES)}; build the engine again",
        )
    return found


def enforce(lock: Lock, host: Host, *, ranks: int, where: str) -> None:
    """Raise EnvironmentUnfit with every reason why an engine can't run on a host, before anything is loaded."""
    raise_all([*lock_rules.faults(lock, host, ranks=ranks, where=where)])
