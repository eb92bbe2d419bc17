"""Run a stage, or reuse what an equal run made, and say why."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtpipe.core import artifacts, environment, reproduction
from trtpipe.core.artifacts import Artifact, KeyParts, Kind, Record
from trtpipe.core.store import Store, now
from trtpipe.errors import ConfigError, EnvironmentUnfit, Interrupted, TrtpipeError, system_fault

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from trtpipe.core.progress import Reporter

LOG = "log.txt"


@dataclass
class Making:
    """What a stage gets to work with and fills in."""

    folder: Path
    log: Path
    reporter: Reporter
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Put a choice into the record and on the screen."""
        self.notes.append(text)
        self.reporter.note(text)


@dataclass(frozen=True)
class Stage:
    """One step of the chain: what decides its output, and how to make it."""

    name: str
    kind: Kind
    revision: int
    inputs: Mapping[str, str]
    parameters: BaseModel
    versions: Mapping[str, str]
    make: Callable[[Making], None]
    resumable: bool = False

    @property
    def parts(self) -> KeyParts:
        return KeyParts(
            stage=self.name,
            revision=self.revision,
            inputs=dict(self.inputs),
            parameters=self.parameters.model_dump(mode="json"),
            versions=dict(self.versions),
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a stage in this run."""

    name: str
    decision: str
    reused: bool
    seconds: float
    artifact: Artifact


class Runner:
    """Obtains the artifacts of a chain of stages in one workspace."""

    def __init__(self, store: Store, reporter: Reporter) -> None:
        self.store = store
        self.reporter = reporter
        self.outcomes: list[Outcome] = []

    def obtain(self, stage: Stage) -> Artifact:
        """Return the stage's artifact: an equal one that is there, or a new one."""
        started = time.monotonic()
        found, reason = self.foresee(stage)
        if found is not None:
            self.reporter.stage(stage.name, f"reused: {reason}")
            self._close(stage, found, "reused", started)
            return found
        self.reporter.stage(stage.name, f"building: {reason}")
        artifact = self._make(stage)
        self._close(stage, artifact, f"built: {reason}", started)
        return artifact

    def foresee(self, stage: Stage) -> tuple[Artifact | None, str]:
        """Return the artifact that would be reused, else None, and the reason; change nothing."""
        parts = stage.parts
        found = self.store.find(stage.kind, parts.key)
        if found is None:
            last = self.store.last(stage.name)
            return None, "; ".join(changes(last, parts.model_dump())) if last else "first run"
        damaged = artifacts.differing_sizes(found)
        if damaged:
            return None, f"damaged since: {', '.join(damaged[:3])}"
        return found, f"same inputs and parameters ({parts.key[:12]})"

    def _make(self, stage: Stage) -> Artifact:
        started = time.monotonic()
        parts = stage.parts
        folder = self.store.partial(stage.kind, parts.key, keep=stage.resumable)
        run = self.store.notes(stage.name, parts.key)
        reproduction.of_command(run, sys.argv[1:])
        making = Making(folder=folder, log=run / LOG, reporter=self.reporter)
        with _located(stage, making):
            stage.make(making)
            return self.store.publish(stage.kind, folder, _record(stage, parts, making, started))

    def _close(self, stage: Stage, artifact: Artifact, decision: str, started: float) -> None:
        self.store.remember(stage.name, artifact.record.parts.model_dump())
        seconds = time.monotonic() - started
        self.outcomes.append(Outcome(stage.name, decision, decision == "reused", seconds, artifact))


def _record(stage: Stage, parts: KeyParts, making: Making, started: float) -> Record:
    outputs = artifacts.outputs_of(making.folder)
    return Record(
        kind=stage.kind,
        key=parts.key,
        parts=parts,
        digest=artifacts.outputs_digest(outputs),
        outputs=outputs,
        figures=making.figures,
        notes=making.notes,
        seconds=round(time.monotonic() - started, 2),
        created=now(),
        environment=environment.describe(),
    )


@contextmanager
def _located(stage: Stage, making: Making) -> Iterator[None]:
    """Complete the errors of a stage with its folder and its log; free the disk that it has filled."""
    try:
        yield
    except OSError as fault:
        raise _complete(system_fault(fault), stage, making) from fault
    except Interrupted:
        raise
    except TrtpipeError as error:
        for one in error.each():
            _complete(one, stage, making)
        raise


def _complete(error: TrtpipeError, stage: Stage, making: Making) -> TrtpipeError:
    # What a full disk holds of a stage that begins anew, and what input that is refused has left, serves nobody.
    if isinstance(error, ConfigError) or (isinstance(error, EnvironmentUnfit) and not stage.resumable):
        shutil.rmtree(making.folder, ignore_errors=True)
    error.where = error.where or str(making.folder)
    if making.log.is_file() and error.where != str(making.log):
        error.log = str(making.log)
    return error


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words which key parts differ, leaf by leaf."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not differing:
        return ["the earlier result is gone"]
    return [f"{name} {_short(before.get(name))} -> {_short(after.get(name))}" for name in differing]


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, value


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text[:12] if len(text) == 64 else text
