"""STAND-IN for `nvidia-smi`, for tests: answers the two queries that are made of it, about GPUs that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def uuid(number: int) -> str:
    return f"GPU-{number}a7c0de5-0000-4000-8000-00000000000{number}"


def write(
    folder: Path,
    *,
    name: str = "NVIDIA A100-SXM4-80GB",
    capability: str = "8.0",
    memory_mib: int = 81920,
    driver: str = "580.95.05",
    free_mib: int | dict[int, int] | None = None,
    count: int = 8,
    processes: str = "",
) -> None:
    """Write it for PATH. ``processes``: lines of the running ones.

    ``free_mib``: of all GPUs, or of some by their number; else as on an idle GPU.
    """
    free = dict.fromkeys(range(count), free_mib) if isinstance(free_mib, int) else free_mib or {}
    gpus = "".join(
        f"{n}, {uuid(n)}, {name}, {capability}, {memory_mib}, {driver}, {free.get(n, memory_mib - 767)}\n"
        for n in range(count)
    )
    script = f"""#!/bin/sh
case "$*" in
*--query-gpu=*) cat <<'END'
{gpus}END
;;
*--query-compute-apps=*) cat <<'END'
{processes}END
;;
esac
"""
    (folder / "nvidia-smi").write_text(script)
    (folder / "nvidia-smi").chmod(0o755)
