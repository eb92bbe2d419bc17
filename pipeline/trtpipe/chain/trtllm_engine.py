"""A TensorRT-LLM engine from files: the lines that build it, on any machine, and the build where TensorRT-LLM is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.chain import trtllm_checkpoint, trtllm_sanity
from trtpipe.chain.export import Source
from trtpipe.chain.trtllm_checkpoint import Config, Line
from trtpipe.config.load import target_file
from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.core import environment
from trtpipe.engines.trtllm.build import checkpoint, chosen, container, gpu_query, probe, rewrites, workers
from trtpipe.engines.trtllm.build import stage as building
from trtpipe.engines.trtllm.build.grammar import command
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.engines.trtllm.built import compare, inspection, lock, lock_rules
from trtpipe.engines.trtllm.built.kv_cost import KvCost
from trtpipe.engines.trtllm.built.request import Request
from trtpipe.engines.trtllm.findings import Finding
from trtpipe.engines.trtllm.launch import machine, serving
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from trtpipe.chain.plan import Planned
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner
    from trtpipe.engines.trtllm.build.grammar import Value
    from trtpipe.engines.trtllm.built.inspection import Inspection


@dataclass(frozen=True)
class Foretold:
    """The build of a plan before it runs: its lines, and what stands against it besides the plan's own findings."""

    planned: Planned
    lines: list[Line]
    arguments: dict[str, Value]
    worker_bytes: int
    findings: list[Finding]

    def document(self) -> dict[str, Any]:
        return {
            "dry_run": True,
            "model_folder": str(self.planned.model),
            "target_file": str(self.planned.target),
            "findings": [finding.document() for finding in (*self.planned.plan.findings, *self.findings)],
            "lines": [{"purpose": line.purpose, "words": line.words} for line in self.lines],
            "arguments": self.arguments,
            "left_out": chosen.OMITTED,
            "host_bytes_of_a_worker": self.worker_bytes,
        }


def foretell(planned: Planned, given: Path | None, config: Config) -> Foretold:
    """Return the lines of a legal plan. ``given``: the TensorRT-LLM checkpoint; where None, a line makes it first.

    ``config``: what that line exports with.

    Workers are as many as ranks: what the building machine's memory holds shows only there. Raises ConfigError where
    no line for the checkpoint is known.
    """
    plan, memory = planned.plan, planned.plan.memory
    if memory is None:
        raise ValueError("a plan that was refused has no lines")
    target, name = plan.target, f"{planned.name}-{planned.target.stem}"
    folder, engine = given or Path(f"{name}-checkpoint"), Path(f"{name}-engine")
    cache = building.timing_cache_name(target.version, RELEASES[target.version].tensorrt, plan.gpu.name)
    asked = chosen.arguments(plan)
    count = target.tensor_parallel * target.pipeline_parallel
    places: dict[str, Value] = {
        "checkpoint_dir": str(folder), "output_dir": str(engine), "input_timing_cache": cache,
        "output_timing_cache": cache,
        "workers": count if target.build_workers == "auto" else target.build_workers,
    }  # fmt: skip
    lines = [] if given else trtllm_checkpoint.lines(planned, folder, config)
    lines.append(Line(f"the engine, with TensorRT-LLM {target.version} on {count} x {plan.gpu.name}",
                      command({**asked, **places})))  # fmt: skip
    return Foretold(planned, lines, asked, workers.bytes_of_worker(memory), _foreseen(planned, asked))


def in_container(foretold: Foretold) -> str:
    """Return what stands before the last line where TensorRT-LLM is not on the host."""
    return container.by_hand("docker", foretold.planned.plan.target.container_image)


def _foreseen(planned: Planned, asked: dict[str, Value]) -> list[Finding]:
    """Return what the builder would make otherwise, refused where the target does not accept it by name."""
    plan = planned.plan
    accepted = plan.target.accepted_changes
    found = [
        Finding(
            "refused", f"accepted_changes names `{name}`, which is no argument whose effect an engine records",
            f"{planned.target} accepted_changes", fix="correct the name; arguments.toml has them all",
        )
        for name in compare.unknown_names(accepted)
    ]  # fmt: skip
    expected = compare.between(asked, rewrites.effective(asked, plan))
    kv = KvCost(plan.division, plan.target, plan.gpu, asked)
    return found + compare.findings(expected, accepted, str(planned.target), kv)


def require_checkpoint(planned: Planned, folder: Path) -> None:
    """Raise ConfigError for all that a checkpoint has otherwise than the plan, or lacks. No weight is read."""
    checkpoint.require(folder, planned.plan)


def build(runner: Runner, foretold: Foretold, folder: Path) -> Artifact:
    """Build, or reuse what an equal build made. The plan must be legal, and nothing foretold refused.

    Raises ConfigError for a checkpoint that is not the plan's, EnvironmentUnfit where this machine can't build it.
    """
    planned = foretold.planned
    plan, target = planned.plan, planned.plan.target
    require_checkpoint(planned, folder)
    release = RELEASES[target.version]
    installation = probe.find(release, target.container_image)
    devices = gpu_query.devices()
    driver_note = gpu_query.require(devices, plan.gpu, release)
    ranks = target.tensor_parallel * target.pipeline_parallel
    if target.build_workers == "auto":
        count, why = workers.choose(min(ranks, len(devices)), foretold.worker_bytes, environment.free_memory_bytes())
    else:
        count, why = target.build_workers, f"{target.build_workers} workers: the target says so"
    cache = building.timing_cache_name(installation.tensorrt_llm, installation.tensorrt, devices[0].name)
    place = building.Place(
        installation, devices, count, why, timing_cache=runner.store.state / "timing-caches" / cache,
        time_limit_s=target.build_time_limit_s, before=partial(trtllm_sanity.check, planned, folder),
        driver_note=driver_note,
    )  # fmt: skip
    findings = [finding.document() for finding in (*plan.findings, *foretold.findings)]
    asked = Request(target=target, arguments=foretold.arguments, foreseen=findings)
    source = Source.at(folder)
    return runner.obtain(building.stage(folder, source.digest, asked, place))


def require_here(found: Inspection, serving_image: str | None = None) -> list[str]:
    """Raise what the engine's lock has against this machine; EnvironmentUnfit too where nothing here could serve it.

    Where TensorRT-LLM is in no package of the host, it is asked for in ``serving_image`` (by default the one that the
    engine's target names): the image that built would be compared with itself. Returns what was not compared, and under
    which conditions it runs.
    """
    kept = lock.read(found.engine.path)
    seen = machine.look(os.environ)
    if seen.driver_fault is not None:
        raise seen.driver_fault
    image = serving_image or _serving_image(found, kept)
    serves: probe.Versions | None
    # an image that serves has the package, and not always trtllm-build on PATH
    if seen.tensorrt_llm:
        serves = probe.Versions(seen.tensorrt_llm, seen.tensorrt, None)
    else:
        serves = probe.versions_of_server(image)
    host = lock_rules.Host.of(
        seen.devices,
        tensorrt_llm=None if serves is None else serves.tensorrt_llm,
        tensorrt=None if serves is None else serves.tensorrt,
        image=serves.image.name if serves and serves.image else None,
        image_references=serves.image.references if serves and serves.image else (),
    )
    lock.enforce(kept, host, ranks=found.engine.world_size, where=str(found.engine.path / lock.LOCK))
    notes = lock_rules.notes(kept, host)
    if serves is None:
        what = "TensorRT-LLM and TensorRT were not compared with the engine's lock"
        notes.append(f"{what}: {image}, which serves, is not here")
    return notes


def _serving_image(found: Inspection, kept: lock.Lock) -> str:
    if found.request is None:
        return lock.release_of(kept, found.engine.path).serving_images[0]
    return serving.image_of(found.request.target, kept, found.engine.path)


def inspect(folder: Path, target: Path | None, overrides: tuple[str, ...]) -> Inspection:
    """Inspect an engine's folder, against a target file where one is given. Raises ConfigError, or Stale."""
    if target is None:
        return inspection.inspect(folder)
    read = target_file(target, overrides)
    if not isinstance(read.target, TensorrtLlmTarget):
        raise ConfigError(
            "the target is of another engine kind", where=read.where("kind"), fix="give one of kind tensorrt-llm"
        )
    return inspection.inspect(folder, read.target)
