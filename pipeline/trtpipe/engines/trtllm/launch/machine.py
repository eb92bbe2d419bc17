"""What a launch finds on this machine, asked of the driver, the kernel and the installed packages."""

from __future__ import annotations

import glob
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trtpipe.engines.trtllm.build import gpu_query
from trtpipe.engines.trtllm.build.releases import TRITON_PACKAGES
from trtpipe.engines.trtllm.launch.line import MPIRUN, TRITON
from trtpipe.errors import EnvironmentUnfit

MIB = 1 << 20
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel's shared memory is mounted
QUERY_LIMIT_S = 60


@dataclass(frozen=True)
class Machine:
    """``devices``: those that the ranks will see; ``driver_fault``: why there is no list of them.

    ``shown``: what CUDA_VISIBLE_DEVICES says, None where it is not set; ``holders``: by a GPU's UUID, a text for each
    process on it; ``shm_free_mib``: of /dev/shm; ``missing``: programs that the line needs; ``tensorrt_llm``,
    ``tensorrt``: versions, None where no package tells; ``backends``: of this Triton, None where there is none.
    """

    devices: list[gpu_query.Device]
    driver_fault: EnvironmentUnfit | None
    shown: str | None
    holders: dict[str, list[str]]
    shm_free_mib: int
    missing: list[str]
    tensorrt_llm: str | None
    tensorrt: str | None
    backends: list[str] | None


def look(environment: Mapping[str, str], program: str = TRITON) -> Machine:
    """Ask for all of it; what can't be told is in the answer as such."""
    shown = environment.get("CUDA_VISIBLE_DEVICES")
    devices, driver_fault = _devices()
    return Machine(
        devices=visible(devices, shown),
        driver_fault=driver_fault,
        shown=shown,
        holders=_holders() if devices else {},
        shm_free_mib=_free_mib(SHARED_MEMORY),
        missing=[name for name in (MPIRUN, program) if shutil.which(name) is None],
        tensorrt_llm=_version("tensorrt_llm"),
        tensorrt=_version("tensorrt"),
        backends=_backends(shutil.which(program)),
    )


def visible(devices: list[gpu_query.Device], shown: str | None) -> list[gpu_query.Device]:
    """Return the GPUs that CUDA shows, which nvidia-smi does not know of, in its order.

    ``shown``: what CUDA_VISIBLE_DEVICES says. CUDA stops at the first entry that is no GPU; so does this at one that
    comes again, and at a slice of a GPU (MIG), which no target is for.
    """
    if shown is None:
        return devices
    chosen: list[gpu_query.Device] = []
    for entry in shown.split(","):
        found = _named(devices, entry.strip())
        if found is None or found in chosen:
            break
        chosen.append(found)
    return chosen


def _named(devices: list[gpu_query.Device], entry: str) -> gpu_query.Device | None:
    """Return the GPU of this index or UUID, of which the beginning is enough where one GPU alone has it."""
    if entry.isdecimal():
        return next((one for one in devices if one.index == int(entry)), None)
    found = [one for one in devices if entry.startswith("GPU-") and one.uuid.startswith(entry)]
    return found[0] if len(found) == 1 else None


def _devices() -> tuple[list[gpu_query.Device], EnvironmentUnfit | None]:
    try:
        return gpu_query.devices(), None
    except EnvironmentUnfit as fault:
        return [], fault


def _free_mib(volume: Path) -> int:
    """Return what is free there; 0 where nothing is mounted."""
    if not volume.is_dir():
        return 0
    found = os.statvfs(volume)
    return found.f_bavail * found.f_frsize // MIB


def _holders() -> dict[str, list[str]]:
    """Return the processes on each GPU, as far as the driver tells: within a container it names none of outside."""
    fields = "gpu_uuid,pid,process_name,used_memory"
    command = ["nvidia-smi", f"--query-compute-apps={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=QUERY_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {}
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        row = [part.strip() for part in line.split(",")]
        if len(row) == 4:
            found.setdefault(row[0], []).append(f"process {row[1]} ({row[2]}) holds {row[3]} MiB")
    return found


def _backends(program: str | None) -> list[str] | None:
    """Return the folders that lie where a Triton looks for its backends: beside its program's."""
    if program is None:
        return None
    return sorted(path.name for path in Path(program).resolve().parents[1].glob("backends/*"))


def _version(name: str) -> str | None:
    found = importlib.metadata.distributions(name=name, path=[*sys.path, *glob.glob(TRITON_PACKAGES)])  # noqa: PTH207 - absolute
    return next((one.version for one in found), None)
