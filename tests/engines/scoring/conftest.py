"""A real tiny model, rows for it, and what an independent computation says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from numpy.typing import NDArray

ROWS = [
    {"id": "a", "ids": [3, 1, 4, 1, 5, 9], "score_from": 2, "text": "one\u2028row\u2029of\u0085text"},
    {"id": "b", "ids": [2, 7, 1], "score_from": 1},
    {"id": "c", "ids": list(range(40)), "score_from": 37},
]
OFFSETS = [0, 4, 6, 9]


@dataclass(frozen=True)
class Scored:
    """``rows``: a file; ``logs``: the log-probabilities of its scored positions, [9, V]."""

    model: Path
    rows: Path
    logs: NDArray[np.float64]

    @property
    def observed(self) -> NDArray[np.float64]:
        tokens = [token for row in ROWS for token in row["ids"][row["score_from"] :]]
        return self.logs[np.arange(len(tokens)), tokens]


def scored(folder: Path, model_type: str) -> Scored:
    model = tiny.own(folder / "model", model_type)
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), encoding="utf-8")
    parts = []
    for row in ROWS:
        with torch.inference_mode():
            logits = tiny.model_of(model)(torch.tensor([row["ids"]])).logits[0]
        parts.append(torch.log_softmax(logits, dim=-1)[row["score_from"] - 1 : -1].numpy())
    return Scored(model, rows, np.concatenate(parts))


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    return scored(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture(scope="session")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    return scored(tmp_path_factory.mktemp("gemma"), "gemma2")
