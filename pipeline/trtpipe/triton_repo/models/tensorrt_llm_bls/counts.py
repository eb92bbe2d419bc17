"""What the engine counts and knows of its tokens, handed on to clients that have asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from steps import Tensors

# What is asked for -> what comes back.
COUNTS = {"return_num_input_tokens": "num_input_tokens", "return_num_output_tokens": "num_output_tokens"}
NEW_TOKENS = COUNTS["return_num_output_tokens"]
ASKED = (*COUNTS, "return_log_probs")


def ask(tensors: Tensors) -> Tensors:
    """Return the inputs of a request with such wishes as the engine takes them; what is false is left out."""
    others = {name: value for name, value in tensors.items() if name not in ASKED}
    return others | {name: np.array([[True]]) for name in ASKED if bool(tensors.get(name, False))}


class Counts:
    """Adds up what is new in each response of the engine until it has been sent on."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}

    def add(self, answer: Tensors) -> None:
        new = {name: int(answer[name].flatten()[0]) for name in COUNTS.values() if name in answer}
        if NEW_TOKENS in new:
            new[NEW_TOKENS] += self._found.get(NEW_TOKENS, 0)
        self._found |= new

    def is_owed(self) -> bool:
        """True where tokens have been counted that no response has told of."""
        return self._found.get(NEW_TOKENS, 0) > 0

    def take(self) -> Tensors:
        """Return the counts as tensors, [1, 1] each; those of the prompt are repeated in each response."""
        found = {name: np.array([[count]], dtype=np.int32) for name, count in self._found.items()}
        self._found.pop(NEW_TOKENS, None)
        return found
