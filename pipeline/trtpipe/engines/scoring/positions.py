"""Log-probabilities of positions from their logits, and the file of them that the drift check reads.

This module stands alone (standard library, numpy, torch): the scripts beside it run with the Python of TensorRT-LLM,
where nothing else of this package is. ``core.scores`` says what the file holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOP_TOKENS = 20


class Part(NamedTuple):
    """The scores of n positions of one row."""

    observed: torch.Tensor  # [n]
    top_ids: torch.Tensor  # [n, 20]
    top: torch.Tensor  # [n, 20]
    argmax: torch.Tensor  # [n]


@dataclass(frozen=True)
class Row:
    """Position p of ``score_from`` ... len(ids) - 1 is scored: how likely is ids[p] after ids[:p]?"""

    id: str
    ids: tuple[int, ...]
    score_from: int

    @property
    def tokens(self) -> int:
        return len(self.ids) - self.score_from


def of(logits: torch.Tensor, observed_ids: torch.Tensor, wanted_ids: torch.Tensor | None) -> Part:
    """Return the scores of n positions from their logits [n, V], in float32.

    ``observed_ids`` [n]: the tokens that follow; ``wanted_ids`` [n, 20]: the baseline's most likely tokens, None where
    the model's own are to be named.
    """
    logits = logits.to(torch.float32)
    norm = logits.logsumexp(dim=-1, keepdim=True)
    top_ids = logits.topk(TOP_TOKENS, dim=-1).indices if wanted_ids is None else wanted_ids
    return Part(
        observed=(logits.gather(-1, observed_ids.unsqueeze(-1)) - norm).squeeze(-1),
        top_ids=top_ids,
        top=logits.gather(-1, top_ids) - norm,
        argmax=logits.argmax(dim=-1),
    )


def joined(parts: Sequence[Part]) -> Part:
    return Part(*(torch.cat(column) for column in zip(*parts, strict=True)))


def rows_of(path: Path) -> list[Row]:
    """Read rows that the caller has checked."""
    with path.open(encoding="utf-8") as file:  # splitlines would cut at U+2028, which JSON leaves in a string
        documents: list[dict[str, Any]] = [json.loads(line) for line in file]
    return [Row(str(row["id"]), tuple(row["ids"]), row["score_from"]) for row in documents]


def wanted_of(path: Path | None, rows: Sequence[Row]) -> list[torch.Tensor | None]:
    """Return the most likely tokens [n, 20] of each row in a baseline's file; None for each where there is none."""
    if path is None:
        return [None] * len(rows)
    with np.load(path, allow_pickle=False) as archive:
        ids = torch.from_numpy(archive["top_ids"]).to(torch.int64)
    return list(ids.split([row.tokens for row in rows]))


def save(path: Path, rows: Sequence[Row], parts: Sequence[Part]) -> None:
    found = Part(*(column.cpu() for column in joined(parts)))
    np.savez(
        path,
        row_ids=np.array([row.id for row in rows], dtype=np.str_),
        row_offsets=np.cumsum([0, *(row.tokens for row in rows)], dtype=np.int64),
        token_ids=np.array([token for row in rows for token in row.ids[row.score_from :]], dtype=np.int32),
        observed=found.observed.numpy(),
        top_ids=found.top_ids.numpy().astype(np.int32),
        top=found.top.numpy(),
        argmax=found.argmax.numpy().astype(np.int32),
    )
