"""The GPUs of this machine, as NVIDIA's driver tells."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.build.releases import compatible_words, fit_of_driver, needed_words
from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.build.releases import Release
    from trtpipe.engines.trtllm.gpus import Gpu

FIELDS = ("index", "uuid", "name", "compute_cap", "memory.total", "driver_version", "memory.free")
QUERY_LIMIT_S = 60
SIZE_TOLERANCE = 0.05  # memory that the driver keeps differs a little from version to version


@dataclass(frozen=True)
class Device:
    """One GPU. ``index``, ``uuid``: as the driver numbers and names it; ``sm``: compute capability times ten."""

    index: int
    uuid: str
    name: str
    sm: int
    memory_mib: int
    driver: str
    free_mib: int


def devices() -> list[Device]:
    """Return this machine's GPUs. Raises EnvironmentUnfit where the driver does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise EnvironmentUnfit(
            "no NVIDIA driver: there is no nvidia-smi", where="PATH", fix="run this on the machine that has the GPUs"
        )
    command = [program, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=QUERY_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise EnvironmentUnfit(
            f"the NVIDIA driver did not answer within {QUERY_LIMIT_S} s",
            where=program,
            fix="see that nvidia-smi works; a GPU that has fallen off the bus hangs it until the machine is restarted",
        ) from None
    try:
        return [_device(line) for line in done.stdout.splitlines() if line.strip()]
    except ValueError:
        said = (done.stderr or done.stdout).strip()
        raise EnvironmentUnfit(
            f"the NVIDIA driver does not list the GPUs: {said}", where=program, fix="see that nvidia-smi works"
        ) from None


def _device(line: str) -> Device:
    index, uuid, name, capability, memory, driver, free = (part.strip() for part in line.split(","))
    major, minor = capability.split(".")
    return Device(int(index), uuid, name, int(major) * 10 + int(minor), int(memory), driver, int(free))


def require(found: list[Device], wanted: Gpu, release: Release) -> str | None:
    """Raise EnvironmentUnfit unless all GPUs are of the wanted type: an engine runs on the type that built it only.

    The driver must run the release's CUDA; returned is under which condition it does, None where there is none.
    """
    others = sorted({f"{one.name} (SM {one.sm}, {one.memory_mib} MiB)" for one in found if not _is(one, wanted)})
    if not found or others:
        raise EnvironmentUnfit(
            f"the target is for {wanted.name} (SM {wanted.sm}, {wanted.memory_mib} MiB), and this machine has "
            f"{', '.join(others) or 'no GPU'}",
            where="nvidia-smi",
            fix="build on the GPUs that will serve, or write their type as `gpu` in the target; CUDA_VISIBLE_DEVICES "
            "does not hide a GPU from this check",
        )
    driver, floor = found[0].driver, release.driver_floor  # one for all GPUs
    fit = fit_of_driver(driver, [one.name for one in found], floor=floor, older=release.older_drivers)
    if fit == "old":
        needed = needed_words(floor, release.older_drivers)
        raise EnvironmentUnfit(
            f"driver {driver} is too old: this release's CUDA needs {needed}",
            where="nvidia-smi",
            fix=f"install driver {needed}",
        )
    return compatible_words(driver, floor) if fit == "compatible" else None


def _is(device: Device, gpu: Gpu) -> bool:
    return device.sm == gpu.sm and abs(device.memory_mib - gpu.memory_mib) <= SIZE_TOLERANCE * gpu.memory_mib
