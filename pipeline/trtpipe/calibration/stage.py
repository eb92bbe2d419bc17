"""The stage ``select-prompts``: prompt log + general set + tokenizer -> calibration set and held-out set."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.calibration import document, files, golden, population, profile, sets, tokenizing
from trtpipe.calibration.reading import Log
from trtpipe.core import digest
from trtpipe.core.runner import Making, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from trtpipe.calibration.population import Population
    from trtpipe.calibration.sets import Sets
    from trtpipe.calibration.settings import Selection
    from trtpipe.core.chat import ChatTokenizer

VERSIONS = ("tokenizers", "jinja2", "polars", "datasketch")
REPORT = "prompts"


@dataclass(frozen=True)
class Report:
    """How the report is made. ``page``: from the document to HTML. ``block_tokens``: of the engine's prefix cache.

    It is no output of the stage: another look of the page must not rebuild what follows.
    """

    page: Callable[[dict[str, Any]], str]
    block_tokens: int

    def write(self, content: dict[str, Any], folder: Path) -> Path:
        """Write ``prompts.json`` and ``prompts.html``; return the page's path."""
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
        (folder / f"{REPORT}.json").write_text(text + "\n", encoding="utf-8")
        path = folder / f"{REPORT}.html"
        path.write_text(self.page(content), encoding="utf-8")
        return path


def stage(
    model: Path,
    model_digest: str,
    paths: list[Path],
    general: Path,
    selection: Selection,
    report: Report,
) -> Stage:
    """Build the stage. ``paths``: files, folders and globs. ``report``: goes beside the stage's log.

    Raises ConfigError where a prompt file is missing.
    """
    log = population.log_of(paths, selection)
    general_log = Log(files.find([general]), {}, None, selection.seed)
    contents = [digest.of_file(file.path) for file in log.files]
    return Stage(
        name="select-prompts",
        kind="prompt-set",
        revision=4,
        inputs={
            "model": model_digest,
            "prompts": digest.of_value(contents),
            "general": digest.of_value([digest.of_file(file.path) for file in general_log.files]),
        },
        parameters=selection,
        versions={name: importlib.metadata.version(name) for name in VERSIONS},
        make=lambda making: _make(making, model, log, general_log, selection, report),
    )


def _make(
    making: Making,
    model: Path,
    log: Log,
    general: Log,
    selection: Selection,
    report: Report,
) -> None:
    tokenizer = tokenizing.load(model, selection.template_date)
    eos_id = tokenizing.end_of_answer(tokenizer, model)
    found = population.read(log, selection, tokenizer, making.reporter)
    where = ", ".join(str(file.path) for file in log.files)
    made = sets.make(found, general, selection, tokenizer, eos_id, where)
    for name, items in (("calibration", made.calibration), ("heldout", made.heldout)):
        _write(making.folder / f"{name}.jsonl", (item.document() for item in items))
        making.figures |= {
            f"{name}_prompts": len(items),
            f"{name}_tokens": sum(len(item.ids) for item in items),
            f"{name}_segments": dict(sorted(Counter(item.segment for item in items).items())),
        }
    making.figures |= _figures(found, made) | tokenizing.figures(tokenizer, selection.template_date)
    known = golden.make(made.business, tokenizer, model, selection.template_date)
    known.write(making.folder)
    making.figures |= {"golden_prompts": len(known.prompts), "golden_tokenizer": known.made_with.digests}
    if len(known.prompts) < golden.COUNT:
        making.note(f"only {len(known.prompts)} golden prompt(s): so few calibration prompts are without tools")
    report.write(document.of(found, made, selection, tokenizer, report.block_tokens), making.log.parent)
    for note in _notes(found, made, selection, tokenizer):
        making.note(note)


def _figures(found: Population, made: Sets) -> dict[str, Any]:
    census, cleaned = found.census, found.cleaned
    return {
        "ledger": census.ledger.document,
        "shortfalls": [str(shortfall) for shortfall in made.shortfalls],
        "general_prompts": made.general,
        "pool_rows": len(census.pool.rows),
        "over_length_rows": made.over_length,
        "files": census.files,
        "shapes": dict(sorted(census.shapes.items())),
        "blank_lines": census.blank_lines,
        "boms_removed": census.boms_removed,
        "control_characters_removed": cleaned.control_characters_removed,
        "masked": dict(sorted(cleaned.masked.items())),
        "reference": profile.reference(found),
    }


def _notes(found: Population, made: Sets, selection: Selection, tokenizer: ChatTokenizer) -> Iterable[str]:
    """Yield what was chosen, changed or dropped, in words."""
    census, cleaned = found.census, found.cleaned
    yield f"read {'; '.join(census.files)}: {', '.join(f'{n} {shape}' for shape, n in sorted(census.shapes.items()))}"
    yield str(census.ledger)
    if census.boms_removed:
        yield f"BOM removed from {census.boms_removed} file(s)"
    if census.blank_lines:
        yield f"{census.blank_lines} blank line(s) passed over"
    if census.shapes["plain"]:
        yield f"{census.shapes['plain']} plain prompt(s) taken as one user message each"
    if cleaned.rows_with_control_characters:
        yield f"control characters removed from {cleaned.rows_with_control_characters} row(s)"
    if cleaned.masked:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(cleaned.masked.items()))
        yield f"personal data masked in {cleaned.rows_masked} row(s): {counts}"
    if made.over_length > selection.over_length_share_max * len(found.candidates):
        share = made.over_length / len(found.candidates)
        yield f"finding: {share:.0%} of the rows are longer than {selection.prompt_tokens_max} tokens"
    for shortfall in made.shortfalls:
        yield f"fewer than asked, as allowed: {shortfall}"
    if selection.general_share:
        yield f"{made.general} of {len(made.calibration)} calibration prompts are from the general set"
    else:
        yield "no general prompts among the calibration prompts, as prompts.general_share: 0 says"
    if any(candidate.row.tools for candidate in found.candidates) and not tokenizer.reads_tools:
        yield "the chat template writes no tool definitions: rows with tools are used without them"
    yield from tokenizing.notes(tokenizer, selection.template_date)


def _write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
