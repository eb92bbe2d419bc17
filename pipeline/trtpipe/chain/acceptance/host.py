"""What keeps this machine from accepting a target: all of it, in the first second, before anything is built."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trtpipe.chain import leading
from trtpipe.core import ports
from trtpipe.engines.trtllm.build import checkpoint, gpu_query, probe
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.engines.trtllm.launch import machine
from trtpipe.errors import ConfigError, EnvironmentUnfit, TrtpipeError, raise_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtpipe.chain.plan import Planned
    from trtpipe.engines.trtllm.build.gpu_query import Device
    from trtpipe.triton_repo.server import Addresses


def require(planned: Planned, folder: Path, addresses: Addresses) -> list[Device]:
    """Return the GPUs. ``folder``: the checkpoint. Raises everything that is missing, what the machine lacks first."""
    target, problems = planned.plan.target, _Problems()
    release, ranks = RELEASES[target.version], target.tensor_parallel * target.pipeline_parallel
    devices: list[Device] = []
    with problems.collecting():
        probe.require_present(release, target.container_image)
    with problems.collecting():
        devices = gpu_query.devices()
        with problems.collecting():
            gpu_query.require(devices, planned.plan.gpu, release)
        _require_count(devices, ranks)
    problems.found += leading.problems(target.version)
    with problems.collecting():
        ports.require_free(addresses.host, addresses.by_purpose)
    with problems.collecting():
        checkpoint.require(folder, planned.plan)
    if not (planned.model / "tokenizer.json").is_file():
        where = str(planned.model)
        problems.found.append(ConfigError("there is no tokenizer.json", where=where, fix="give the model's folder"))
    raise_all(problems.found)
    return devices


def _require_count(devices: list[Device], ranks: int) -> None:
    """Raise EnvironmentUnfit where CUDA shows fewer GPUs than there are ranks: package and launch count those."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(machine.visible(devices, shown))
    if count < ranks:
        there = "there are" if shown is None else f"CUDA_VISIBLE_DEVICES={shown} shows"
        raise EnvironmentUnfit(
            f"the target has {ranks} ranks, one a GPU, and {there} {count} GPUs",
            where="nvidia-smi" if shown is None else "CUDA_VISIBLE_DEVICES",
            fix="use a machine with as many GPUs, or a target for fewer"
            if len(devices) < ranks
            else f"unset it, or name {ranks} GPUs",
        )


class _Problems:
    def __init__(self) -> None:
        self.found: list[TrtpipeError] = []

    @contextmanager
    def collecting(self) -> Iterator[None]:
        try:
            yield
        except TrtpipeError as fault:
            self.found += fault.each()
