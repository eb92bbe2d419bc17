"""A forward hook that turns the hidden states of whole prompts into log-probabilities.

vLLM's ``prompt_logprobs`` yields a model's own top tokens only; with -1 it keeps rows x vocabulary in memory.
``prompt_logprob_token_ids`` would take any ids, but needs the V2 runner and with it the triton package. So
the hook, put on the model by the official ``LLM.apply_model``, sees each step's token ids, positions and
hidden states and applies the model's own ``compute_logits`` to the scored positions, in slices. Rows are
recognised by their token ids, not by the scheduler's order. The same code serves both sides of a comparison.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from trtpipe.core.scores import Scores
from trtpipe.engines.scoring import positions
from trtpipe.engines.scoring.positions import Part
from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.utils.hooks import RemovableHandle

    from trtpipe.engines.scored_rows import ScoredRow

# Float32 logits of so many positions are in memory at once: 50 MB at a vocabulary of 49,152.
SLICE_POSITIONS = 256

_WHERE = "teacher-forced scoring"


class Tap:
    """Collects the scores of ``rows`` while the engine runs each row's ids, the last one left out.

    Without ``baseline`` the 20 most likely tokens of a position are the model's own; with it, the baseline's.
    """

    def __init__(self, rows: list[ScoredRow], baseline: Scores | None, progress: Callable[[int], None]) -> None:
        self._rows = rows
        self._baseline = baseline
        self._offsets = np.cumsum([0, *(row.tokens for row in rows)], dtype=np.int64)
        self._progress = progress
        self._found: dict[int, Part] = {}
        self._pending: dict[bytes, list[int]] = defaultdict(list)
        for index in reversed(range(len(rows))):
            self._pending[np.array(rows[index].ids[:-1], dtype=np.int64).tobytes()].append(index)

    def attach(self, model: torch.nn.Module) -> RemovableHandle:
        return model.register_forward_hook(self._hook, with_kwargs=True)

    def _hook(self, model: torch.nn.Module, _: tuple[Any, ...], inputs: dict[str, Any], hidden: torch.Tensor) -> None:
        ids = inputs["input_ids"].to(torch.int64).numpy()
        bounds = np.unique([0, *np.flatnonzero(inputs["positions"].numpy() == 0), len(ids)]).tolist()
        for start, end in pairwise(bounds):
            waiting = self._pending.get(ids[start:end].tobytes())
            if not waiting:
                raise ToolFailed(
                    f"vLLM ran {end - start} tokens that are no row waiting to be scored",
                    where=_WHERE,
                    fix="please report it: whole prompts, each once, were asked for",
                )
            index = waiting.pop()
            scored = hidden[start + self._rows[index].score_from - 1 : end]
            self._found[index] = self._score(model, index, scored)
            self._progress(len(self._found))

    def _score(self, model: Any, index: int, hidden: torch.Tensor) -> Part:
        row = self._rows[index]
        observed_ids = torch.tensor(row.ids[row.score_from :])
        wanted = None
        if self._baseline is not None:
            wanted_ids = self._baseline.top_ids[self._offsets[index] : self._offsets[index + 1]]
            wanted = torch.from_numpy(wanted_ids).to(torch.int64)
        parts = []
        for start in range(0, len(hidden), SLICE_POSITIONS):
            part = slice(start, start + SLICE_POSITIONS)
            logits = model.compute_logits(hidden[part])
            parts.append(positions.of(logits, observed_ids[part], None if wanted is None else wanted[part]))
        return positions.joined(parts)

    def scores(self) -> Scores:
        """Return the whole. Raises ToolFailed where the engine left out a row or made no number."""
        lacking = [row.id for index, row in enumerate(self._rows) if index not in self._found]
        if lacking:
            raise ToolFailed(
                f"vLLM did not run {len(lacking)} of {len(self._rows)} rows, first {lacking[0]}",
                where=_WHERE,
                fix="see the log",
            )
        found = positions.joined([self._found[index] for index in range(len(self._rows))])
        observed_ids = [np.array(row.ids[row.score_from :], dtype=np.int32) for row in self._rows]
        try:
            return Scores(
                row_ids=tuple(row.id for row in self._rows),
                row_offsets=self._offsets,
                token_ids=np.concatenate(observed_ids),
                observed=found.observed.numpy(),
                top_ids=found.top_ids.numpy().astype(np.int32),
                top=found.top.numpy(),
                argmax=found.argmax.numpy().astype(np.int32),
            )
        except ValueError as fault:
            raise ToolFailed(
                f"the engine's scores can't be used: {fault}",
                where=_WHERE,
                fix="check the checkpoint: NaN in the logits comes from broken weights or scales",
            ) from None
