"""A TensorRT-LLM release served from here in leader mode: the launch's line and checks, supervised as any server is."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.engines.trtllm.built import folder, lock
from trtpipe.engines.trtllm.launch import checks, line, machine, rank_log
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.errors import EnvironmentUnfit, ToolFailed, TrtpipeError, raise_all
from trtpipe.triton_repo import server, trtllm_repository
from trtpipe.triton_repo.server import Addresses, Program, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BACKEND = "backends/tensorrtllm"
BESIDE = ("engine", trtllm_repository.TOKENIZER)


def problems(version: str) -> list[TrtpipeError]:
    """Return what this machine lacks to serve engines of this TensorRT-LLM, before there is one."""
    images = RELEASES[version].serving_images
    fix = f"run this in {images[-1]}, or one of {', '.join(images[:-1])}"
    program, found = _program(), list[TrtpipeError]()
    if program is None:
        found.append(EnvironmentUnfit("there is no tritonserver here", where=f"PATH, {line.TRITON}", fix=fix))
    elif not (backend := program.resolve().parents[1] / BACKEND).is_dir():
        found.append(EnvironmentUnfit("this Triton has no backend tensorrtllm", where=str(backend), fix=fix))
    if shutil.which(line.MPIRUN) is None:
        found.append(EnvironmentUnfit("there is no mpirun here, which starts the ranks", where="PATH", fix=fix))
    return found


@contextmanager
def running(
    release: Path,
    addresses: Addresses,
    *,
    state: Path,
    log: Path,
    time_limit_s: float,
    note: Callable[[str], None],
    is_unwanted: Callable[[], bool] = lambda: False,
) -> Iterator[Server]:
    """Serve a release within a ``with`` block, as ``server.running`` does. ``note`` gets warnings about the start.

    Raises EnvironmentUnfit with all that is missing or taken here, ToolFailed (not ready in time; the log's end).
    """
    deadline = time.monotonic() + time_limit_s
    engine, kept = folder.read(release / "engine"), lock.read(release / "engine")
    ports = Ports(addresses.http_port, addresses.grpc_port, addresses.metrics_port)
    # Versions are compared by ``servable.require``.
    found = checks.check(engine, kept, machine.look(os.environ), ports, host=addresses.host, software=False)
    raise_all([*problems(kept.tensorrt_llm), *found.refusals])
    program = str(_program())
    for warning in found.warnings:
        note(f"{warning.what}; {warning.cost}; {warning.fix}")
    home = server.working_folder(state, addresses)
    server.assemble(home, release, BESIDE)
    repository, prefix = home / "model_repository", server.shm_prefix_of(addresses)
    listening = addresses.host_options()
    words = line.leader(engine.world_size, repository, ports, shm_prefix=prefix, program=program, listening=listening)
    started = Program(words, dict(os.environ), home, repository / line.ENGINE_MODEL, prefix)
    with ExitStack() as stack:
        try:
            serving = stack.enter_context(server.supervised(started, addresses, log, deadline, is_unwanted))
        except ToolFailed as fault:
            raise _told_by_rank(fault, engine.world_size, log) from None
        yield serving


def _told_by_rank(fault: ToolFailed, ranks: int, log: Path) -> ToolFailed:
    """Add the last line of each rank to why the server is not ready."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        said = rank_log.each_rank(rank_log.last_lines(lines), ranks)
    return ToolFailed(f"{fault.what}\nthe last line of each rank:\n{said}", where=fault.where, fix=fault.fix)


def _program() -> Path | None:
    found = shutil.which("tritonserver") or shutil.which(line.TRITON)
    return None if found is None else Path(found)
