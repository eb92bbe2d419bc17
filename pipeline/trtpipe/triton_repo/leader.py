"""A TensorRT-LLM release in leader mode: one Triton a rank under one mpirun, of which rank 0 answers.

The words are those of NVIDIA/TensorRT-LLM triton_backend/scripts/launch_triton_server.py; unlike it, this waits, and
ends what it has started.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtpipe.errors import EnvironmentUnfit, TrtpipeError, raise_all
from trtpipe.triton_repo import ports, server, trtllm_repository
from trtpipe.triton_repo.server import Addresses, Program, Server

PROGRAM = "tritonserver"
USUAL_PLACE = Path("/opt/tritonserver/bin/tritonserver")  # in NVIDIA's images
MPIRUN = "mpirun"
BACKEND = "backends/tensorrtllm"
ENGINE_MODEL = "tensorrt_llm"
BESIDE = (trtllm_repository.ENGINE_FOLDER, trtllm_repository.TOKENIZER)


def problems(ranks: int, images: tuple[str, ...]) -> list[TrtpipeError]:
    """Return what this machine lacks to serve. ``images``: those that have it all."""
    fix = f"run this in {images[-1]}, or one of {', '.join(images[:-1])}" if images[1:] else "install it"
    found: list[TrtpipeError] = []
    program = _program()
    if program is None:
        found.append(EnvironmentUnfit("there is no tritonserver here", where=f"PATH, {USUAL_PLACE}", fix=fix))
    elif not (backend := program.resolve().parents[1] / BACKEND).is_dir():
        found.append(EnvironmentUnfit("this Triton has no backend tensorrtllm", where=str(backend), fix=fix))
    if ranks > 1 and shutil.which(MPIRUN) is None:
        what = f"there is no mpirun here, and the engine runs in {ranks} processes"
        found.append(EnvironmentUnfit(what, where="PATH", fix=fix))
    return found


@contextmanager
def running(
    release: Path, ranks: int, images: tuple[str, ...], addresses: Addresses, *, state: Path, log: Path, ready_s: float
) -> Iterator[Server]:
    """Serve a release of ``ranks`` ranks within a ``with`` block, as ``server.running`` does.

    Raises EnvironmentUnfit (what is missing here, ports), ToolFailed (not ready within ``ready_s``; the log's end).
    """
    raise_all(problems(ranks, images))
    ports.require_free(addresses.host, addresses.by_purpose)
    deadline = time.monotonic() + ready_s
    folder = server.working_folder(state, addresses)
    server.assemble(folder, release, BESIDE)
    prefix = server.shm_prefix_of(addresses)
    program = Program(command(str(_program()), ranks, addresses, folder, prefix), dict(os.environ), folder, prefix)
    with server.supervised(program, addresses, log, deadline) as serving:
        yield serving


def command(tritonserver: str, ranks: int, addresses: Addresses, folder: Path, shm_prefix: str) -> list[str]:
    """Return the line that starts all ranks. A single rank needs no MPI."""
    each = [
        [
            tritonserver,
            f"--model-repository={folder / 'model_repository'}",
            "--disable-auto-complete-config",
            f"--backend-config=python,shm-region-prefix-name={shm_prefix}{rank}_",
            f"--exit-timeout-secs={server.EXIT_TIMEOUT_S}",
            *addresses.options(),
            # The other ranks only hold their part of the engine.
            *(["--model-control-mode=explicit", f"--load-model={ENGINE_MODEL}"] if rank else []),
        ]
        for rank in range(ranks)
    ]
    if ranks == 1:
        return each[0]
    words = [MPIRUN, "--allow-run-as-root"]
    for rank, line in enumerate(each):
        words += [*([":"] if rank else []), "-n", "1", *line]
    return words


def _program() -> Path | None:
    found = shutil.which(PROGRAM)
    return Path(found) if found else USUAL_PLACE if USUAL_PLACE.is_file() else None
