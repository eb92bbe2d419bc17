"""Where an engine may run: written when it is built, enforced before it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from trtpipe.core import documents
from trtpipe.core.store import write_json
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.errors import ConfigError, EnvironmentUnfit, TrtpipeError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.build.gpu_query import Device

LOCK = "engine.lock.json"


class Lock(BaseModel):
    """The content of engine.lock.json. TensorRT refuses a plan of another version or GPU type; this says so first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    tensorrt_llm: str
    tensorrt: str
    backend: Literal["tensorrtllm"] = Field(default="tensorrtllm", description="Triton's backend that serves it.")
    container_image: str | None = Field(description="Image that built it; null: the host's own installation.")
    container_digest: str | None = Field(description="sha256 of the image; null where it has none.")
    driver_floor: int = Field(description="Oldest major version of NVIDIA's driver that the release's CUDA runs on.")
    driver_at_build: str
    gpu_name: str = Field(description="As the driver calls it.")
    gpu_memory_mib: int
    sm_by_rank: list[int] = Field(min_length=1, description="Compute capability x 10 of the GPU that built each rank.")


class Host(BaseModel):
    """What an engine would run on. ``tensorrt``: None where nothing here tells its version."""

    tensorrt_llm: str
    tensorrt: str | None
    driver: str
    gpu_names: list[str]
    sms: list[int]

    @classmethod
    def of(cls, found: list[Device], *, tensorrt_llm: str, tensorrt: str | None) -> Host:
        return cls(
            tensorrt_llm=tensorrt_llm, tensorrt=tensorrt, driver=found[0].driver if found else "0",
            gpu_names=[one.name for one in found], sms=[one.sm for one in found],
        )  # fmt: skip


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


def enforce(lock: Lock, host: Host, *, ranks: int, where: str) -> None:
    """Raise EnvironmentUnfit with every reason why an engine can't run on a host, before anything is loaded."""
    raise_all([*_versions(lock, host, where), *_gpus(lock, host, ranks, where)])


def _versions(lock: Lock, host: Host, where: str) -> list[TrtpipeError]:
    release = RELEASES.get(lock.tensorrt_llm)
    images = f"serve it in one of {', '.join(release.serving_images)}" if release else "serve it where it was built"
    problems: list[TrtpipeError] = [
        EnvironmentUnfit(f"built with {name} {built}, running {name} {running}", where=where, fix=images)
        for name, built, running in (
            ("TensorRT-LLM", lock.tensorrt_llm, host.tensorrt_llm),
            ("TensorRT", lock.tensorrt, host.tensorrt),
        )
        if running is not None and running != built
    ]
    if int(host.driver.split(".")[0]) < lock.driver_floor:
        problems.append(
            EnvironmentUnfit(
                f"the driver is {host.driver}, and the engine's CUDA needs {lock.driver_floor} or newer",
                where=where,
                fix="install a newer driver",
            )
        )
    return problems


def _gpus(lock: Lock, host: Host, ranks: int, where: str) -> list[TrtpipeError]:
    if len(host.sms) < ranks:
        return [
            EnvironmentUnfit(
                f"the engine has {ranks} ranks, one a GPU, and there are {len(host.sms)} GPUs",
                where=where,
                fix="serve it on a machine with as many GPUs, or build for fewer",
            )
        ]
    built, fix = sorted(set(lock.sm_by_rank)), "build it on the type of GPU that serves it"
    others = sorted({sm for sm in host.sms if sm not in built})
    if others or len(built) > 1:
        return [
            EnvironmentUnfit(
                f"built for SM {', '.join(map(str, built))} ({lock.gpu_name}), running on SM "
                f"{', '.join(map(str, sorted(set(host.sms))))} ({', '.join(sorted(set(host.gpu_names)))})",
                where=where,
                fix=fix,
            )
        ]
    names = sorted({name for name in host.gpu_names if name != lock.gpu_name})
    if names:
        return [EnvironmentUnfit(f"built for {lock.gpu_name}, running on {', '.join(names)}", where=where, fix=fix)]
    return []
