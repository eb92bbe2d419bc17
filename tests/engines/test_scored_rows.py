"""Rows to be scored: read in order, refused by line, compared with the baseline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trtpipe.core.scores import TOP_TOKENS, Scores
from trtpipe.engines import scored_rows
from trtpipe.engines.scored_rows import ScoredRow
from trtpipe.errors import ConfigError, Stale

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"id": "a", "segment": "chat", "ids": [1, 2, 3, 4], "score_from": 2}


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_rows_are_read_in_file_order(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", {**GOOD, "id": "z"}, GOOD)
    assert scored_rows.read(path, max_model_len=4) == [
        ScoredRow("z", (1, 2, 3, 4), 2),
        ScoredRow("a", (1, 2, 3, 4), 2),
    ]
    assert ScoredRow("a", (1, 2, 3, 4), 2).tokens == 2


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{", "not a row"),
        ("[]", "not a row"),
        ({"id": "b", "ids": [1, 2]}, "score_from"),
        ({**GOOD, "id": "b", "ids": [1, "2", 3, 4]}, "ids must be token ids"),
        ({**GOOD, "id": "b", "ids": [1, True, 3, 4]}, "ids must be token ids"),
        ({**GOOD, "id": "b", "ids": [1, -2, 3, 4]}, "ids must be token ids"),
        ({**GOOD, "id": "b", "score_from": 0}, "score_from 0 is not between 1 and 3"),
        ({**GOOD, "id": "b", "score_from": 4}, "score_from 4 is not between 1 and 3"),
        ({**GOOD, "id": "b", "ids": [1] * 6}, "6 tokens, but the engine takes 5"),
        (GOOD, "the id a stands twice"),
    ],
)
def test_a_row_that_cannot_be_scored_is_named_by_line(tmp_path: Path, row: Any, fault: str) -> None:
    path = written(tmp_path / "rows.jsonl", GOOD, row)
    with pytest.raises(ConfigError) as caught:
        scored_rows.read(path, max_model_len=5)
    assert fault in caught.value.what
    assert caught.value.where == f"{path}:2"


def test_no_rows_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", written(tmp_path / "empty.jsonl")):
        with pytest.raises(ConfigError, match="no rows to score"):
            scored_rows.read(path, max_model_len=5)


def baseline_of(ids: list[str], tokens: list[int], offsets: list[int]) -> Scores:
    count = len(tokens)
    return Scores(
        row_ids=tuple(ids),
        row_offsets=np.array(offsets, dtype=np.int64),
        token_ids=np.array(tokens, dtype=np.int32),
        observed=np.zeros(count, dtype=np.float32),
        top_ids=np.tile(np.arange(TOP_TOKENS, dtype=np.int32), (count, 1)),
        top=np.zeros((count, TOP_TOKENS), dtype=np.float32),
        argmax=np.zeros(count, dtype=np.int32),
    )


def test_the_baseline_must_be_of_the_same_rows(tmp_path: Path) -> None:
    rows = [ScoredRow("a", (1, 2, 3), 1), ScoredRow("b", (1, 5), 1)]
    scored_rows.require_same_rows(rows, baseline_of(["a", "b"], [2, 3, 5], [0, 2, 3]), tmp_path)
    for other in (
        baseline_of(["b", "a"], [2, 3, 5], [0, 2, 3]),
        baseline_of(["a", "b"], [2, 3, 6], [0, 2, 3]),
        baseline_of(["a", "b"], [2, 3, 5], [0, 1, 3]),
        baseline_of(["a"], [2, 3], [0, 2]),
    ):
        with pytest.raises(Stale, match="other rows"):
            scored_rows.require_same_rows(rows, other, tmp_path)
