"""STAND-IN for `nvidia-smi`, for tests: answers the two queries that are made of it, about GPUs that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(
    folder: Path,
    *,
    name: str = "NVIDIA A100-SXM4-80GB",
    capability: str = "8.0",
    memory_mib: int = 81920,
    driver: str = "580.95.05",
    free_mib: int | None = None,
    count: int = 8,
    processes: str = "",
) -> None:
    """Write it for PATH. ``free_mib``: by default as on an idle GPU; ``processes``: lines of the running ones."""
    free = memory_mib - 767 if free_mib is None else free_mib
    gpus = f"{name}, {capability}, {memory_mib}, {driver}, {free}\n" * count
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
