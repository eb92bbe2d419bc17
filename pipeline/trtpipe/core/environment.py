"""What the machine is, for the record: CPU, memory, versions; and whether an optional package is there."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

from trtpipe import __version__
from trtpipe.errors import EnvironmentUnfit

MEMORY_FILE = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
# What decides which kernels the local engine can use.
TELLING_CPU_FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8")


@lru_cache
def cpu_flags() -> tuple[str, ...]:
    """Return the telling CPU flags that are present."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    flags = next((set(line.split(":", 1)[1].split()) for line in lines if line.startswith("flags")), set())
    return tuple(flag for flag in TELLING_CPU_FLAGS if flag in flags)


def cpu_has_avx512() -> bool:
    """True where the local engine has a 4-bit kernel, and torch a fast bfloat16 product."""
    return "avx512f" in cpu_flags()


def cpu_has_fp8_kv() -> bool:
    """True where the local engine has an FP8 KV kernel: AVX-512 or AMX."""
    return any(flag.startswith(("avx512", "amx")) for flag in cpu_flags())


def describe() -> dict[str, Any]:
    """Return the environment as written into every record."""
    return {
        "trtpipe": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu_cores": len(os.sched_getaffinity(0)),
        "cpu_flags": list(cpu_flags()),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
    }


def free_memory_bytes() -> int:
    """Return the memory that processes can still have here: the machine's, or the container's where that is less."""
    lines = MEMORY_FILE.read_text("ascii").splitlines()
    available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if limit.is_file() and used.is_file() and (most := limit.read_text("ascii").strip()) != "max":
        available = min(available, int(most) - int(used.read_text("ascii")))
    return available


def requirements(extra: str) -> list[str]:
    """Return what an extra of this package brings, as pip takes it."""
    parts = [line.partition(";") for line in importlib.metadata.requires("trtpipe") or ()]
    return [name for name, _, marker in parts if marker.strip().replace("'", '"') == f'extra == "{extra}"']


def version_of(distribution: str, *, extra: str) -> str:
    """Return an installed version. Raises EnvironmentUnfit naming the extra that brings the package."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentUnfit(
            f"the package {distribution} is not installed",
            where="this Python environment",
            fix=f"pip install 'trtpipe[{extra}]', or `make setup` in a checkout",
        ) from None
