"""The stage ``select-prompts``: prompt log + tokenizer -> calibration set and held-out set."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from trtpipe.calibration import sources, tokens
from trtpipe.calibration.split import split
from trtpipe.core import digest
from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.core.runner import Making, Stage
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Selection(BaseModel):
    """What decides the two sets, apart from the log and the tokenizer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calibration_prompts_max: int
    heldout_prompts_per_segment: int
    prompt_tokens_max: int
    over_length: str
    seed: int


def stage(model: Path, model_digest: str, files: list[Path], selection: Selection) -> Stage:
    """Build the stage. Raises ConfigError where a prompt file is missing."""
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise ConfigError("prompt file not found", where=", ".join(missing), fix="check prompts.files")
    return Stage(
        name="select-prompts",
        kind="prompt-set",
        revision=2,
        inputs={"model": model_digest, "prompts": digest.of_value([digest.of_file(path) for path in files])},
        parameters=selection,
        versions={name: importlib.metadata.version(name) for name in ("tokenizers", "jinja2")},
        make=lambda making: _make(making, model, files, selection),
    )


def _make(making: Making, model: Path, files: list[Path], selection: Selection) -> None:
    reading = sources.read(files)
    tokenizer = _tokenizer(model)
    eos_id = _end_of_answer(tokenizer, model)
    parts = split(
        reading.rows,
        heldout_per_segment=selection.heldout_prompts_per_segment,
        calibration_max=selection.calibration_prompts_max,
        seed=selection.seed,
    )
    for segment, lacking in parts.shortfalls.items():
        making.note(f"segment `{segment}`: {lacking} held-out prompt(s) fewer than asked (two thirds at most)")
    lengths = tokens.Lengths()
    counts = {}
    for name, rows in (("calibration", parts.calibration), ("heldout", parts.heldout)):
        encoded = []
        for index, row in enumerate(rows, start=1):
            encoded.append(_encode(row, tokenizer, eos_id))
            making.reporter.progress(f"tokenize {name}", index, len(rows))
        encoded = tokens.limit(encoded, selection.prompt_tokens_max, selection.over_length, lengths)
        if not encoded:
            raise ConfigError(
                f"the {name} set is empty",
                where=", ".join(map(str, files)),
                fix="give more prompts, or allow longer ones",
            )
        _write(making.folder / f"{name}.jsonl", (item.document() for item in encoded))
        counts[f"{name}_prompts"] = len(encoded)
        counts[f"{name}_tokens"] = sum(len(item.ids) for item in encoded)
        making.figures[f"{name}_segments"] = dict(sorted(Counter(item.row.segment for item in encoded).items()))
    making.figures |= counts | {
        "rows_read": len(reading.rows) + reading.duplicates,
        "exact_duplicates_dropped": reading.duplicates,
        "over_length_cut": lengths.cut,
        "over_length_dropped": lengths.dropped,
        "rows_not_needed": parts.not_needed,
        "blank_lines": reading.blank_lines,
        "boms_removed": reading.boms_removed,
    }
    _explain(making, reading, tokenizer)


def _tokenizer(model: Path) -> ChatTokenizer:
    try:
        tokenizer = ChatTokenizer.load(model)
    except ChatError as fault:
        raise ConfigError(
            str(fault), where=str(model), fix="add the missing file or entry to the model folder"
        ) from None
    if not tokenizer.has_template:
        raise ConfigError(
            "the tokenizer has no chat template",
            where=str(model / "tokenizer_config.json"),
            fix="add `chat_template`, or a chat_template.jinja, to the model folder",
        )
    return tokenizer


def _end_of_answer(tokenizer: ChatTokenizer, model: Path) -> int:
    """Return the token that ends an answer: of several the one that the tokenizer calls its eos token."""
    named = tokenizer.tokenizer.token_to_id(tokenizer.named_tokens.get("eos_token", ""))
    if named is None and not tokenizer.eos_ids:
        raise ConfigError(
            "the model has no token that ends an answer",
            where=str(model / "tokenizer_config.json"),
            fix="add `eos_token` there, or `eos_token_id` to config.json",
        )
    return min(tokenizer.eos_ids) if named is None else named


def _encode(row: sources.Row, tokenizer: ChatTokenizer, eos_id: int) -> tokens.Encoded:
    try:
        return tokens.encode(row, tokenizer, eos_id)
    except ChatError as fault:
        raise ConfigError(
            f"the chat template refuses the row: {fault}", where=row.place, fix="correct the row's messages"
        ) from None


def _explain(making: Making, reading: sources.Reading, tokenizer: ChatTokenizer) -> None:
    if reading.boms_removed:
        making.note(f"BOM removed from {reading.boms_removed} file(s)")
    if reading.blank_lines:
        making.note(f"{reading.blank_lines} blank line(s) passed over")
    if reading.duplicates:
        making.note(f"{reading.duplicates} exact duplicate(s) dropped")
    if reading.plain_prompts:
        making.note(f"{reading.plain_prompts} plain prompt(s) taken as one user message each")
    making.figures |= {
        "pad_id": tokenizer.pad_id,
        "pad_source": tokenizer.pad_source,
        "eos_ids": sorted(tokenizer.eos_ids),
    }


def _write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
