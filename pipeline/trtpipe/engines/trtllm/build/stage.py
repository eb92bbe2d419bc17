"""The stage ``build-engine`` of TensorRT-LLM: checkpoint + plan -> an engine that is whole and what was asked for."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from trtpipe.core import golden_ids, reproduction
from trtpipe.core.process import tail
from trtpipe.core.runner import Making, Stage
from trtpipe.core.tool import run_tool
from trtpipe.engines.trtllm.build import container
from trtpipe.engines.trtllm.build.build_log import BuildLog
from trtpipe.engines.trtllm.build.grammar import command
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.engines.trtllm.built import folder, inspection, lock, request
from trtpipe.errors import ToolFailed, TrtpipeError, raise_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtpipe.engines.trtllm.build.gpu_query import Device
    from trtpipe.engines.trtllm.build.probe import Installation
    from trtpipe.engines.trtllm.built.request import Request

NEW_CACHE = "timing.cache"


class Building(BaseModel):
    """What decides the engine, apart from the checkpoint and the versions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: dict[str, str | int]
    accepted_changes: list[str]
    sanity: bool
    gpu_name: str
    sm: int


@dataclass(frozen=True)
class Place:
    """Where and how it is built. ``timing_cache``: kept from build to build; it makes the next one shorter.

    ``before``: tries the checkpoint, and raises where it is not worth the hours.
    ``driver_note``: under which condition the driver is new enough, if there is one.
    """

    installation: Installation
    devices: list[Device]
    workers: int
    workers_why: str
    timing_cache: Path
    time_limit_s: float
    before: Callable[[Making], None]
    driver_note: str | None = None


def timing_cache_name(tensorrt_llm: str, tensorrt: str, gpu_name: str) -> str:
    """Return the file's name: timings hold for one TensorRT on one type of GPU, not for all of its SM."""
    gpu = "-".join(re.findall(r"[a-z0-9]+", gpu_name.lower()))
    return f"tensorrt-llm-{tensorrt_llm}-tensorrt-{tensorrt}-{gpu}.cache"


def stage(checkpoint: Path, checkpoint_digest: str, asked: Request, place: Place) -> Stage:
    first = place.devices[0]
    return Stage(
        name="build-engine",
        kind="engine",
        revision=1,
        inputs={"checkpoint": checkpoint_digest},
        parameters=Building(
            arguments=asked.arguments,
            accepted_changes=asked.target.accepted_changes,
            sanity=asked.target.sanity,
            gpu_name=first.name,
            sm=first.sm,
        ),
        versions={"tensorrt_llm": place.installation.tensorrt_llm, "tensorrt": place.installation.tensorrt},
        make=lambda making: _make(making, checkpoint, asked, place),
    )


def _make(making: Making, checkpoint: Path, asked: Request, place: Place) -> None:
    target = asked.target
    ranks = target.tensor_parallel * target.pipeline_parallel
    for said in asked.foreseen:
        if said["kind"] == "changed":
            making.note(said["what"])
    if place.driver_note is not None:
        making.note(place.driver_note)
    place.before(making)
    making.note(place.workers_why)
    reader = BuildLog(ranks, making.reporter)
    ending = _run(making, checkpoint, asked, place, reader)
    _require_ranks(making, ranks, ending, place.workers)
    making.figures |= reader.figures()
    golden_ids.carry(checkpoint, making.folder)
    request.write(making.folder, asked)
    lock.write(making.folder, _lock(place, ranks))
    _require_as_asked(making)
    place.timing_cache.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(making.log.parent / NEW_CACHE, place.timing_cache)
    sizes = folder.read(making.folder).sizes
    making.figures |= {
        "kv_dtype": target.kv_dtype, "world_size": ranks, "workers": place.workers, "bytes": sum(sizes.values()),
    }  # fmt: skip


def _run(making: Making, checkpoint: Path, asked: Request, place: Place, reader: BuildLog) -> str | None:
    """Run the line; return how it ended, None where well."""
    run = making.log.parent
    cache = run / NEW_CACHE  # a killed build must not leave half a cache in the kept place
    if place.timing_cache.is_file():
        shutil.copyfile(place.timing_cache, cache)
    places: dict[str, str | int] = {
        "checkpoint_dir": str(checkpoint), "output_dir": str(making.folder), "input_timing_cache": str(cache),
        "output_timing_cache": str(cache), "workers": place.workers,
    }  # fmt: skip
    line = command({**asked.arguments, **places})
    line[0] = place.installation.program
    engine, image, label = place.installation.engine, place.installation.image, f"trtpipe-{run.name}"
    if engine is not None and image is not None:
        making.note(_image_words(image))
        line = container.wrapped(
            engine, image.reference, line, read=[checkpoint], written=[making.folder, run], label=label
        )
    reproduction.of_tool(run, line, making.folder)
    try:
        return run_tool(
            line, log=making.log, time_limit_s=place.time_limit_s, environment=os.environ, on_line=reader.take
        )
    finally:
        if engine is not None:
            container.kill(engine, label)


def _image_words(image: container.Image) -> str:
    if image.is_pinned:
        return f"built in {image.name}"
    if not image.references:
        return f"built in {image.name}, a name that can come to mean other bytes: it has no digest to name instead"
    return (
        f"built in {image.reference}: {image.name}, which the target names, can come to mean other bytes; write that "
        "as container_image to pin it"
    )


def _require_ranks(making: Making, ranks: int, ending: str | None, workers: int) -> None:
    """Raise ToolFailed where the program failed, or said that it did not and lacks a rank."""
    missing = [rank for rank in range(ranks) if not (making.folder / f"rank{rank}.engine").is_file()]
    if ending is None and not missing:
        return
    lacking = f"rank {', '.join(map(str, missing))} of {ranks} not written" if missing else "all ranks written"
    fix = "see the log"
    if missing and workers > 1:
        fix += "; a rank that was killed often lacked host memory: --set target.build_workers=1 builds one at a time"
    raise ToolFailed(
        f"trtllm-build failed: {ending or 'exit status 0'}, {lacking}\n{tail(making.log)}",
        where=str(making.log),
        fix=fix,
    )


def _require_as_asked(making: Making) -> None:
    """Raise ToolFailed for each flag that became something else, and note those that the target accepts."""
    problems: list[TrtpipeError] = []
    for finding in inspection.inspect(making.folder).findings:
        if finding.kind == "refused":
            cost = f"; cost: {finding.cost}" if finding.cost else ""
            problems.append(ToolFailed(f"{finding.what}{cost}", where=finding.where, fix=finding.fix))
        else:
            making.note(finding.what)
    raise_all(problems)


def _lock(place: Place, ranks: int) -> lock.Lock:
    """Return the lock. Rank r is built on GPU r % workers (parallel_build in tensorrt_llm/commands/build.py)."""
    devices, installation = place.devices, place.installation
    workers, image = min(place.workers, len(devices)), installation.image
    return lock.Lock(
        tensorrt_llm=installation.tensorrt_llm,
        tensorrt=installation.tensorrt,
        container_image=image.name if image else None,
        container_digest=image.digest if image else None,
        driver_floor=RELEASES[installation.tensorrt_llm].driver_floor,
        driver_at_build=devices[0].driver,
        gpu_name=devices[0].name,
        gpu_memory_mib=devices[0].memory_mib,
        sm_by_rank=[devices[rank % workers].sm for rank in range(ranks)],
    )
