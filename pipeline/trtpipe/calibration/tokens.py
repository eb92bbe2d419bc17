"""From rows of text to rows of token ids: chat template once, as the server will see them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtpipe.calibration.sources import Row
    from trtpipe.core.chat import ChatTokenizer


@dataclass
class Lengths:
    """Counts of the length limit's effect."""

    cut: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class Encoded:
    """A row as token ids: prompt with generation prompt, then a known response with one EOS."""

    row: Row
    ids: list[int]
    prompt_tokens: int
    score_from: int

    def document(self) -> dict[str, Any]:
        return {
            "id": self.row.id,
            "segment": self.row.segment,
            "messages": self.row.chat,
            "response": self.row.response,
            "ids": self.ids,
            "prompt_tokens": self.prompt_tokens,
            "score_from": self.score_from,
        }


def encode(row: Row, tokenizer: ChatTokenizer, eos_id: int) -> Encoded:
    """Encode a row. Positions before ``score_from`` (template, earlier messages) repeat: they don't count."""
    prompt_ids = tokenizer.encode_chat(row.chat)
    response_ids = [*tokenizer.encode(row.response), eos_id] if row.response else []
    lead_tokens = len(tokenizer.encode_plain(_lead(row, tokenizer)))
    score_from = max(1, min(lead_tokens, len(prompt_ids) - 1))
    return Encoded(row, prompt_ids + response_ids, len(prompt_ids), score_from)


def _lead(row: Row, tokenizer: ChatTokenizer) -> str:
    """Return the rendered text before the last message's content: all that another content leaves equal.

    Searching for the content would find a short one in the template's own words too.
    """
    *earlier, last = row.chat
    other = "b" if last["content"].lstrip().startswith("a") else "a"
    ours, theirs = tokenizer.render(row.chat), tokenizer.render([*earlier, {**last, "content": other}])
    same = takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    return "".join(character for character, _ in same)


def limit(encoded: list[Encoded], tokens_max: int, policy: str, lengths: Lengths) -> list[Encoded]:
    """Apply the length limit to every row and count what it did."""
    kept = []
    for item in encoded:
        if len(item.ids) <= tokens_max:
            kept.append(item)
        elif policy == "cut" and item.score_from < tokens_max - 1:
            lengths.cut += 1
            kept.append(Encoded(item.row, item.ids[:tokens_max], min(item.prompt_tokens, tokens_max), item.score_from))
        else:
            lengths.dropped += 1
    return kept
