"""An engine folder of the right form, without weights, and a release around it, for tests of the launch."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.engines.trtllm.built import lock
from trtpipe.engines.trtllm.built.lock import Lock
from trtpipe.engines.trtllm.launch import release_files

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.launch.line import Ports

A100 = "NVIDIA A100-SXM4-80GB"


def target(**changes: Any) -> TensorrtLlmTarget:
    values: dict[str, Any] = {
        "kind": "tensorrt-llm", "gpu": "a100-80gb", "tensor_parallel": 8, "weights": "w4a16_awq",
        "kv_dtype": "fp8_e4m3", "kv_reuse": False, "chunked_context": False,
    }  # fmt: skip
    return TensorrtLlmTarget(**values | changes)


def locked(**changes: Any) -> Lock:
    values: dict[str, Any] = {
        "tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48", "container_image": None, "container_digest": None,
        "driver_floor": 580, "driver_at_build": "580.95.05", "gpu_name": A100, "gpu_memory_mib": 81920,
        "sm_by_rank": [80] * 8,
    }  # fmt: skip
    return Lock(**values | changes)


def engine(folder: Path, *, tp: int = 8, pp: int = 1, rank_bytes: int = 4096, **of_lock: Any) -> Path:
    """Write an engine folder. Its plans are holes: they take no room and can't be loaded."""
    folder.mkdir(parents=True)
    mapping = {"world_size": tp * pp, "tp_size": tp, "pp_size": pp}
    config = {
        "version": "1.2.1", "pretrained_config": {"mapping": mapping}, "build_config": {"max_batch_size": 256},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    for rank in range(tp * pp):
        with (folder / f"rank{rank}.engine").open("wb") as file:
            file.truncate(rank_bytes)
    lock.write(folder, locked(**{"sm_by_rank": [80] * (tp * pp)} | of_lock))
    return folder


def release(folder: Path, *, ports: Ports | None = None, **of_engine: Any) -> Path:
    """Write what a launch needs of a release: engine, the engine model's folder, launch files."""
    built = engine(folder / "engine", **of_engine)
    (folder / "model_repository/tensorrt_llm").mkdir(parents=True)
    for name, text in release_files.files(built, target(), lock.read(built), ports).items():
        path = folder / "launch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return numbers
