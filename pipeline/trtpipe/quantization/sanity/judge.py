"""Does a checkpoint say what its model says? Judged on the tokens that both would choose; the evidence in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# SmolLM2-135M, which loses more from 4 bits than larger models, at 970 positions of its golden prompts: 0.67; with its
# scales zeroed, reversed or transposed, or its nibbles swapped: at most 0.01.
AGREEMENT_MIN = 0.25
REPEATED_SHARE_MAX = 0.8
LOSS_OF_CHANCE_MIN = 0.9  # of ln(vocabulary), the loss of a guess
SHOWN = 8


@dataclass(frozen=True)
class Judgement:
    """``agreement``: share of ``positions`` at which both choose the same token. ``fault``: None where it is sound.

    Losses are in nats a token, on the prompts' own text. None: outputs that are not finite have none.
    """

    positions: int
    agreement: float | None
    model_loss: float | None
    checkpoint_loss: float | None
    fault: str | None

    def figures(self) -> dict[str, Any]:
        return {
            "sanity_positions": self.positions,
            "sanity_agreement": self.agreement,
            "sanity_model_loss": self.model_loss,
            "sanity_checkpoint_loss": self.checkpoint_loss,
        }


def judge(result: dict[str, Any], vocabulary: int, spell: Callable[[int], str | None]) -> Judgement:
    """Judge what the worker has found. ``spell``: a token's text."""
    wanted, found = result["model"], result["checkpoint"]
    if "bad_layer" in wanted:
        fault = (
            f"the outputs of the model's own layer {wanted['bad_layer']} are not finite: there is nothing to compare"
        )
        return Judgement(0, None, None, None, fault)
    positions = sum(map(len, wanted["chosen"]))
    if "bad_layer" in found:
        fault = f"the outputs of its layer {found['bad_layer']} are not finite, and those of the model are"
        return Judgement(positions, None, wanted["loss"], None, fault)
    pairs = list(zip(chain(*wanted["chosen"]), chain(*found["chosen"]), strict=True))
    agreement = round(sum(ours == theirs for ours, theirs in pairs) / positions, 4)
    garbled = None if agreement >= AGREEMENT_MIN else _garbled(wanted, found, agreement, vocabulary, spell)
    return Judgement(positions, agreement, wanted["loss"], found["loss"], garbled)


def _garbled(
    wanted: dict[str, Any],
    found: dict[str, Any],
    agreement: float,
    vocabulary: int,
    spell: Callable[[int], str | None],
) -> str:
    said = [
        f"it chooses the model's token at {agreement:.0%} of the positions, and sound 4-bit weights do at most of them"
    ]
    ids = list(chain(*found["chosen"]))
    token, count = Counter(ids).most_common(1)[0]
    if count > REPEATED_SHARE_MAX * len(ids):
        said.append(f"one token, {token} {spell(token)!r}, is {count / len(ids):.0%} of all that it chooses")
    if found["loss"] > LOSS_OF_CHANCE_MIN * math.log(vocabulary):
        said.append(f"its loss is that of a guess: {found['loss']:.2f} nats a token, ln(vocabulary)"
                    f" {math.log(vocabulary):.2f}, the model's {wanted['loss']:.2f}")  # fmt: skip
    number, theirs = max(enumerate(found["chosen"]), key=lambda one: _differing(one[1], wanted["chosen"][one[0]]))
    ours = wanted["chosen"][number]
    said.append(
        f"prompt {number + 1} of {len(found['chosen'])} ends with {_spelled(theirs, spell)}, the model's with"
        f" {_spelled(ours, spell)}"
    )
    return "; ".join(said)


def _differing(ours: list[int], theirs: list[int]) -> float:
    return sum(one != other for one, other in zip(ours, theirs, strict=True)) / len(ours)


def _spelled(ids: list[int], spell: Callable[[int], str | None]) -> str:
    return " ".join(f"{token} {spell(token)!r}" for token in ids[-SHOWN:])
