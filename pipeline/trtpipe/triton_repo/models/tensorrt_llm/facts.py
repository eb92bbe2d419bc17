"""What a client has asked to be told about its answer, beside the tokens themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from generation import Generation


class Facts:
    """Gathers what is new until the next response. Tokens of a stop word are among it, ending tokens are not."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._tokens = 0
        self._log_probs: list[float] = []
        self._log_prob_ids: list[int] = []
        self._log_prob_sum = 0.0

    def add(self, tokens: Sequence[int], log_probs: Sequence[float]) -> None:
        """Take new tokens as the engine has chosen them; their text may come later, or be spelled anew."""
        self._tokens += len(tokens)
        self._log_prob_ids += tokens
        self._log_probs += log_probs
        self._log_prob_sum += sum(log_probs)

    def take(self) -> dict[str, Any]:
        """Return the tensors of the next response by name, as lists without the batch dimension."""
        found: dict[str, Any] = {name: [count] for name, count in self._generation.counts(self._tokens).items()}
        if self._generation.log_probs:
            # By beams, of which there is one; the sum is that of the answer so far.
            found |= {
                "output_log_probs": [self._log_probs],
                "cum_log_probs": [self._log_prob_sum],
                "log_prob_ids": [self._log_prob_ids],
            }
        self._tokens, self._log_probs, self._log_prob_ids = 0, [], []
        return found
