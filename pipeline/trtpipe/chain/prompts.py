"""Prompts of a workspace: the stage that chooses them, and the description of a log on its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.calibration import document, files, population, sets, tokenizing
from trtpipe.calibration import stage as selection
from trtpipe.calibration.reading import Log
from trtpipe.calibration.settings import Selection
from trtpipe.calibration.stage import Report
from trtpipe.config import starter
from trtpipe.core import artifacts
from trtpipe.errors import ConfigError
from trtpipe.report import prompts as report

if TYPE_CHECKING:
    from trtpipe.config.load import Workspace
    from trtpipe.core.progress import Reporter
    from trtpipe.core.runner import Stage

ALL_ROWS = 2**62


def stage(space: Workspace, model: Path, model_digest: str, block_tokens: int) -> Stage:
    """Build the stage ``select-prompts`` from the config."""
    paths = [space.resolve(name) for name in space.config.prompts.files]
    how = Report(report.page, block_tokens)
    return selection.stage(model, model_digest, paths, _general(space), _settings(space), how)


@dataclass(frozen=True)
class Description:
    """A log described. ``examples``: prompts by segment, as text."""

    document: dict[str, Any]
    examples: dict[str, list[str]]


def describe(
    space: Workspace, model: Path, prompts: tuple[Path, ...], block_tokens: int, *, full: bool, reporter: Reporter
) -> Description:
    """Describe ``prompts``; without any, the config's, with what would be chosen from them.

    Bad rows are counted, never refused. Raises ConfigError where a file as a whole can't be read.
    """
    changes: dict[str, Any] = {"bad_rows_share_max": 1.0, "allow_short": True}
    if full:
        changes["pool_rows"] = ALL_ROWS
    settings = _settings(space).model_copy(update=changes)
    paths = [path.resolve() for path in prompts] or [space.resolve(name) for name in space.config.prompts.files]
    log = population.log_of(paths, settings)
    tokenizer = tokenizing.load(model, settings.template_date)
    found = population.read(log, settings, tokenizer, reporter)
    made = None
    if not prompts:
        general = Log(files.find([_general(space)]), {}, None, settings.seed)
        eos_id = tokenizing.end_of_answer(tokenizer, model)
        made = sets.make(found, general, settings, tokenizer, eos_id, ", ".join(map(str, paths)))
    content = document.of(found, made, settings, tokenizer, block_tokens)
    return Description(content, document.examples(found))


def reference_of(record: Path) -> dict[str, Any]:
    """Return a prompt set's distributions, to compare with. Raises ConfigError where it is none, or an older one."""
    folder = record.parent if record.name == artifacts.RECORD else record
    artifact = artifacts.read(folder)
    reference: dict[str, Any] | None = artifact.record.figures.get("reference")
    if artifact.record.kind != "prompt-set" or reference is None:
        raise ConfigError(
            "the record holds no distribution of prompts to compare with",
            where=str(folder),
            fix="give the folder of a prompt set (calibration/sets/...) made by this version",
        )
    return reference


def _general(space: Workspace) -> Path:
    own = space.config.prompts.general_file
    return starter.source() / starter.GENERAL_PROMPTS if own is None else space.resolve(own)


def _settings(space: Workspace) -> Selection:
    return Selection(**space.config.prompts.model_dump(exclude={"files", "general_file"}))
