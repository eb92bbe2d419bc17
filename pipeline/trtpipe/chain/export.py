"""An export: the workspace's checkpoint, or one given, written in another layout into a folder of the user's choice."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.calibration import texts
from trtpipe.chain.chain import STAGE_NAMES, Chain
from trtpipe.chain.foresight import Foreseen, Foresight, NotMade
from trtpipe.core import artifacts, digest
from trtpipe.core.reproduction import PARTIAL_SUFFIX
from trtpipe.core.runner import Runner, Stage
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import stage as exports

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact, Kind
    from trtpipe.core.progress import Reporter
    from trtpipe.quantization.exports.stage import Exporting


class OneFolder(Store):
    """A workspace's store whose only artifact is the export, which lies where the user wants it."""

    def __init__(self, root: Path, folder: Path) -> None:
        super().__init__(root)
        self.folder = folder

    def path(self, kind: Kind, key: str) -> Path:
        return self.folder


@dataclass(frozen=True)
class Source:
    """The checkpoint to export."""

    folder: Path
    digest: str

    @classmethod
    def at(cls, folder: Path) -> Source:
        """Take a folder: an artifact, whose record has the digest, or a copy without one."""
        if not (folder / "config.json").is_file():
            raise ConfigError("no checkpoint: there is no config.json", where=str(folder), fix="give its folder")
        if not (folder / artifacts.RECORD).is_file():
            return cls(folder, digest.of_value(digest.of_folder(folder)))
        artifact = artifacts.read(folder)
        artifacts.verify(artifact)
        return cls(folder, artifact.digest)


@dataclass(frozen=True)
class Foresaid:
    """What an export would do: the stages it needs, and what it would change; None where that shows only later."""

    stages: list[Foreseen]
    notes: list[str] | None


def export(
    space: Workspace, given: Path | None, out: Path, exporting: Exporting, reporter: Reporter
) -> tuple[Source, Artifact]:
    """Export the checkpoint ``given``, or the workspace's own, which is made if need be, into ``out``."""
    source = Source.at(given or Chain(space, Runner(Store(space.root), reporter)).checkpoint.path)
    return source, _obtain(space, out, _stage(space, source, exporting), reporter)


def export_texts(space: Workspace, out: Path, reporter: Reporter) -> Artifact:
    """Write the texts of the workspace's calibration set, which is made if need be, into ``out``."""
    chain = Chain(space, Runner(Store(space.root), reporter))
    return _obtain(space, out, texts.stage(chain.prompt_set, chain.model.folder), reporter)


def _obtain(space: Workspace, out: Path, stage: Stage, reporter: Reporter) -> Artifact:
    try:
        return Runner(OneFolder(space.root, out), reporter).obtain(stage)
    finally:  # nothing is left in a folder of the user's
        shutil.rmtree(out.with_name(out.name + PARTIAL_SUFFIX), ignore_errors=True)


def foresee(space: Workspace, given: Path | None, out: Path, exporting: Exporting, reporter: Reporter) -> Foresaid:
    """Return what ``export`` would do; change nothing. Raises what it would raise before it writes."""
    runner = Foresight(Store(space.root))
    try:
        source = Source.at(given or Chain(space, runner, keep_digests=False).checkpoint.path)
    except NotMade:
        depends = Foreseen("export", "depends", f"on what {STAGE_NAMES['checkpoint']} gives")
        return Foresaid([*runner.foreseen.values(), depends], None)
    runner.store = OneFolder(space.root, out)
    notes = exports.foresee(source.folder, exporting, reporter, time_limit_s=space.config.quantization.time_limit_s)
    with suppress(NotMade):
        runner.obtain(_stage(space, source, exporting))
    return Foresaid(list(runner.foreseen.values()), notes)


def foresee_texts(space: Workspace, out: Path) -> Foresaid:
    """Return what ``export_texts`` would do; change nothing."""
    runner = Foresight(Store(space.root))
    chain = Chain(space, runner, keep_digests=False)
    try:
        stage = texts.stage(chain.prompt_set, chain.model.folder)
    except NotMade:
        depends = Foreseen("export", "depends", f"on what {STAGE_NAMES['prompt_set']} gives")
        return Foresaid([*runner.foreseen.values(), depends], None)
    runner.store = OneFolder(space.root, out)
    with suppress(NotMade):
        runner.obtain(stage)
    return Foresaid(list(runner.foreseen.values()), None)


def _stage(space: Workspace, source: Source, exporting: Exporting) -> Stage:
    limit_s = space.config.quantization.time_limit_s
    return exports.stage(source.folder, source.digest, exporting, time_limit_s=limit_s)


def require_ours(out: Path) -> None:
    """Raise ConfigError unless ``out`` is new, empty or an earlier export."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / artifacts.RECORD).is_file() or artifacts.read(out).record.parts.stage != "export":
        raise ConfigError(
            "this is there already and is no earlier export: it is not overwritten",
            where=str(out),
            fix="give a new folder to --out",
        )
