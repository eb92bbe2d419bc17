"""Log probabilities and the tokens that they are of, handed on with the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from steps import ids_of

if TYPE_CHECKING:
    from steps import Tensors


class LogProbs:
    """Gathers those of the engine's responses until they have been sent on; without any, there is nothing to send.

    ``repeated``: each response has those of all tokens so far, as TensorRT-LLM's ``LlmRequest::createResult`` makes it.
    The tokens of a response are new ones all the same, and nobody has changed them yet; the local engine, which has,
    tells them apart.
    """

    def __init__(self, *, repeated: bool) -> None:
        self._repeated, self._seen = repeated, 0
        self._new: list[np.ndarray[Any, Any]] = []
        self._ids: list[int] = []
        self._sum: Tensors = {}

    def add(self, answer: Tensors) -> None:
        if "output_log_probs" in answer:
            values = answer["output_log_probs"]
            self._new.append(values[..., self._seen :] if self._repeated else values)
            self._seen = values.shape[-1]
            self._ids += ids_of(answer) if self._repeated else answer["log_prob_ids"].flatten().tolist()
            self._sum = {"cum_log_probs": answer["cum_log_probs"]}

    def is_owed(self) -> bool:
        """True where some have come that no response has told of."""
        return any(new.size for new in self._new)

    def take(self) -> Tensors:
        """Return output_log_probs [1, 1, n], log_prob_ids [1, 1, n] and cum_log_probs [1, 1]."""
        if not self._sum:
            return {}
        new = np.concatenate(self._new, axis=-1) if self._new else np.zeros((1, 1, 0), dtype=np.float32)
        ids = np.array([[self._ids]], dtype=np.int32)
        self._new, self._ids = [], []
        return {"output_log_probs": new, "log_prob_ids": ids, **self._sum}
