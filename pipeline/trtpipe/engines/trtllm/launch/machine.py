"""What a launch finds on this machine, asked of the driver, the kernel and the installed packages."""

from __future__ import annotations

import glob
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trtpipe.engines.trtllm.build import gpu_query
from trtpipe.engines.trtllm.launch.line import MPIRUN, TRITON
from trtpipe.errors import EnvironmentUnfit

MIB = 1 << 20
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel's shared memory is mounted
QUERY_LIMIT_S = 60
# where the images from 26.04 on keep TensorRT-LLM; the python3 on their PATH may be another one
TRITON_PACKAGES = "/opt/venv-tritonserver/lib/python3*/site-packages"


@dataclass(frozen=True)
class Machine:
    """``devices``: those that the ranks will see; ``driver_fault``: why there is no list of them.

    ``shown``: what CUDA_VISIBLE_DEVICES says, None where it is not set; ``holders``: a text for each process on a GPU;
    ``shm_free_mib``: of /dev/shm; ``missing``: programs that the line needs; ``tensorrt_llm``, ``tensorrt``: versions,
    None where no package tells.
    """

    devices: list[gpu_query.Device]
    driver_fault: EnvironmentUnfit | None
    shown: str | None
    holders: list[str]
    shm_free_mib: int
    missing: list[str]
    tensorrt_llm: str | None
    tensorrt: str | None


def look(environment: Mapping[str, str], program: str = TRITON) -> Machine:
    """Ask for all of it; what can't be told is in the answer as such."""
    shown = environment.get("CUDA_VISIBLE_DEVICES")
    devices, driver_fault = _devices()
    return Machine(
        devices=visible(devices, shown),
        driver_fault=driver_fault,
        shown=shown,
        holders=_holders() if devices else [],
        shm_free_mib=_free_mib(SHARED_MEMORY),
        missing=[name for name in (MPIRUN, program) if shutil.which(name) is None],
        tensorrt_llm=_version("tensorrt_llm"),
        tensorrt=_version("tensorrt"),
    )


def visible(devices: list[gpu_query.Device], shown: str | None) -> list[gpu_query.Device]:
    """Return the GPUs that CUDA shows, which nvidia-smi does not know of; CUDA stops at the first that is none."""
    if shown is None:
        return devices
    entries = [entry.strip() for entry in shown.split(",") if entry.strip()]
    if not all(entry.isdecimal() for entry in entries):  # by UUID: how many is known, which ones is not asked for
        return devices[: len(entries)]
    chosen = []
    for entry in entries:
        if int(entry) >= len(devices):
            break
        chosen.append(devices[int(entry)])
    return chosen


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


def _holders() -> list[str]:
    """Return the processes on the GPUs, as far as the driver tells: within a container it names none of outside."""
    command = ["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=QUERY_LIMIT_S)
    except subprocess.TimeoutExpired:
        return []
    rows: list[Sequence[str]] = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines()]
    return [f"process {row[0]} ({row[1]}) holds {row[2]} MiB" for row in rows if len(row) == 3]


def _version(name: str) -> str | None:
    found = importlib.metadata.distributions(name=name, path=[*sys.path, *glob.glob(TRITON_PACKAGES)])  # noqa: PTH207 - absolute
    return next((one.version for one in found), None)
