"""What a release of either kind of engine is for those who serve it, and how it is served here."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.chain import leading
from trtpipe.core import artifacts
from trtpipe.engines.trtllm.built import folder, lock
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.triton_repo import server, trtllm_repository
from trtpipe.triton_repo.server import Addresses, Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact


@dataclass(frozen=True)
class Released:
    """``tokenizer``: the folder that holds it; ``context_tokens``: longest prompt with its answer."""

    tokenizer: Path
    context_tokens: int


def is_tensorrt_llm(engine: Path) -> bool:
    """True for an engine that ``build-engine`` made with TensorRT-LLM; the local one has an engine.json instead."""
    return (engine / lock.LOCK).is_file()


def read(release: Artifact) -> Released:
    engine = release.path / "engine"
    if is_tensorrt_llm(engine):
        limits = folder.read(engine).config["build_config"]
        return Released(release.path / trtllm_repository.TOKENIZER, limits["max_seq_len"])
    arguments = json.loads((engine / "engine.json").read_text("utf-8"))["arguments"]
    return Released(engine, arguments["max_model_len"])


def ports_of(space: Workspace) -> Ports:
    serving = space.config.serving
    return Ports(serving.http_port, serving.grpc_port, serving.metrics_port)


def addresses_of(space: Workspace) -> Addresses:
    serving = space.config.serving
    return Addresses(serving.host, serving.http_port, serving.grpc_port, serving.metrics_port)


def running(
    space: Workspace,
    release: Artifact,
    addresses: Addresses,
    *,
    state: Path,
    log: Path,
    note: Callable[[str], None],
    is_unwanted: Callable[[], bool] = lambda: False,
) -> AbstractContextManager[Server]:
    """Serve a release within a ``with`` block. What keeps it from running here: ``servable.require``.

    An engine of TensorRT-LLM is compared with the record first, every byte: Stale where it has changed. ``note`` gets
    warnings about its start.
    """
    engine, serving = release.path / "engine", space.config.serving
    if not is_tensorrt_llm(engine):
        return server.running(
            release.path,
            space.resolve(serving.triton_environment),
            addresses,
            state=state,
            log=log,
            ready_timeout_s=serving.ready_timeout_s,
            is_unwanted=is_unwanted,
        )
    artifacts.verify(release)
    limit_s = release.record.parts.parameters.get("load_time_limit_s", serving.ready_timeout_s)
    return leading.running(
        release.path, addresses, state=state, log=log, time_limit_s=limit_s, note=note, is_unwanted=is_unwanted
    )
