"""The rows of a JSONL file that are to be scored: token ids, and from where on they count."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.errors import ConfigError, Stale

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.scores import Scores


@dataclass(frozen=True)
class ScoredRow:
    """Position p of ``score_from`` ... len(ids) - 1 is scored: how likely is ids[p] after ids[:p]?"""

    id: str
    ids: tuple[int, ...]
    score_from: int

    @property
    def tokens(self) -> int:
        return len(self.ids) - self.score_from


def read(path: Path, *, max_model_len: int) -> list[ScoredRow]:
    """Read the rows in file order. Raises ConfigError naming the first line that can't be scored."""
    rows: list[ScoredRow] = []
    seen: set[str] = set()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = _row(line, f"{path}:{number}", max_model_len)
                if row.id in seen:
                    raise _refusal(f"the id {row.id} stands twice", f"{path}:{number}")
                seen.add(row.id)
                rows.append(row)
    except FileNotFoundError:
        raise ConfigError("there are no rows to score", where=str(path), fix="check the path") from None
    if not rows:
        raise ConfigError("there are no rows to score", where=str(path), fix="give a file with at least one row")
    return rows


def _row(line: str, where: str, max_model_len: int) -> ScoredRow:
    try:
        document: dict[str, Any] = json.loads(line)
        row = ScoredRow(str(document["id"]), tuple(document["ids"]), document["score_from"])
    except (ValueError, KeyError, TypeError) as fault:
        raise _refusal(f"not a row with id, ids and score_from: {fault!r}", where) from None
    if not all(type(token) is int and token >= 0 for token in row.ids):
        raise _refusal("ids must be token ids", where)
    if type(row.score_from) is not int or not 1 <= row.score_from < len(row.ids):
        raise _refusal(f"score_from {row.score_from} is not between 1 and {len(row.ids) - 1}", where)
    if len(row.ids) > max_model_len:
        raise ConfigError(
            f"{len(row.ids)} tokens, but the engine takes {max_model_len}",
            where=where,
            fix="lower prompts.prompt_tokens_max, which selects the prompts again, or use an engine that takes more",
        )
    return row


def _refusal(what: str, where: str) -> ConfigError:
    return ConfigError(what, where=where, fix="correct the row, or select the prompts again")


def require_same_rows(rows: list[ScoredRow], baseline: Scores, where: Path) -> None:
    """Raise Stale unless ``baseline`` was scored on exactly these rows."""
    offsets = baseline.row_offsets.tolist()
    same = baseline.row_ids == tuple(row.id for row in rows) and all(
        tuple(baseline.token_ids[start:end].tolist()) == row.ids[row.score_from :]
        for row, start, end in zip(rows, offsets[:-1], offsets[1:], strict=True)
    )
    if not same:
        raise Stale(
            "the baseline's scores belong to other rows",
            where=str(where),
            fix="score the baseline again on these rows",
        )
