"""From rows of text to rows of token ids: chat template once, as the server will see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from trtpipe.core.chat import ChatError
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtpipe.calibration.row import Row
    from trtpipe.core.chat import ChatTokenizer

BATCH_ROWS = 512
WINDOW_SHARE_MIN = 8  # a last window shorter than this part of the limit says too little to be a sample


@dataclass(frozen=True)
class Counted:
    """A row with the lengths of its prompt (generation prompt included) and of its response with one EOS, in tokens."""

    row: Row
    prompt_tokens: int
    response_tokens: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.response_tokens


@dataclass(frozen=True)
class Encoded:
    """A row as token ids: prompt with generation prompt, then a known response with one EOS."""

    row: Row
    segment: str
    ids: list[int]
    prompt_tokens: int
    score_from: int

    def document(self) -> dict[str, Any]:
        return {
            "id": self.row.id,
            "segment": self.segment,
            "messages": self.row.chat,
            "tools": self.row.tool_definitions,
            "response": self.row.response,
            "ids": self.ids,
            "prompt_tokens": self.prompt_tokens,
            "score_from": self.score_from,
        }


def rendered(row: Row, tokenizer: ChatTokenizer) -> str:
    """Return the prompt's text. Raises ConfigError where the chat template refuses the row."""
    try:
        return tokenizer.render(row.chat, tools=row.tool_definitions)
    except ChatError as fault:
        raise ConfigError(
            f"the chat template refuses the row: {fault}", where=row.place, fix="correct the row's messages"
        ) from None


def count(
    rows: Sequence[Row], tokenizer: ChatTokenizer, progress: Callable[[int], None] = lambda done: None
) -> list[Counted]:
    """Return all rows with their lengths. Raises as ``rendered``."""
    counted: list[Counted] = []
    for start in range(0, len(rows), BATCH_ROWS):
        batch = rows[start : start + BATCH_ROWS]
        prompts = tokenizer.encode_many([rendered(row, tokenizer) for row in batch])
        responses = tokenizer.tokenizer.encode_batch_fast(
            [row.response or "" for row in batch], add_special_tokens=False
        )
        counted += [
            Counted(row, len(prompt), len(response.ids) + 1 if row.response else 0)
            for row, prompt, response in zip(batch, prompts, responses, strict=True)
        ]
        progress(len(counted))
    return counted


def encode(row: Row, segment: str, tokenizer: ChatTokenizer, eos_id: int) -> Encoded:
    """Encode a row. Positions before ``score_from`` (template, earlier messages) repeat: they don't count."""
    prompt_ids = tokenizer.encode_plain(rendered(row, tokenizer))
    response_ids = [*tokenizer.encode(row.response), eos_id] if row.response else []
    lead_tokens = len(tokenizer.encode_plain(_lead(row, tokenizer)))
    score_from = max(1, min(lead_tokens, len(prompt_ids) - 1))
    return Encoded(row, segment, prompt_ids + response_ids, len(prompt_ids), score_from)


def _lead(row: Row, tokenizer: ChatTokenizer) -> str:
    """Return the rendered text before the last message's content: all that another content leaves equal.

    Searching for the content would find a short one in the template's own words too.
    """
    last = row.messages[-1]
    other = "b" if last.content.lstrip().startswith("a") else "a"
    changed = replace(row, messages=(*row.messages[:-1], last._replace(content=other)))
    ours, theirs = rendered(row, tokenizer), rendered(changed, tokenizer)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    return "".join(character for character, _ in same)


def cut(item: Encoded, tokens_max: int) -> Encoded | None:
    """Return the row's first ``tokens_max`` tokens; None where nothing to score would be left."""
    if item.score_from >= tokens_max - 1:
        return None
    return replace(item, ids=item.ids[:tokens_max], prompt_tokens=min(item.prompt_tokens, tokens_max))


def windows(item: Encoded, tokens_max: int, bos_id: int | None) -> list[Encoded]:
    """Return the row in pieces of at most ``tokens_max`` tokens, called id, id/2, id/3 ...

    Every piece begins with BOS where the model wants one; a last one shorter than an eighth of the limit is left out.
    """
    lead = [] if bos_id is None else [bos_id]
    first = cut(item, tokens_max)
    made = [] if first is None else [first]
    step = tokens_max - len(lead)
    for number, start in enumerate(range(tokens_max, len(item.ids), step), start=2):
        piece = item.ids[start : start + step]
        if len(piece) * WINDOW_SHARE_MIN >= tokens_max:
            prompt_tokens = min(max(item.prompt_tokens - start, 0) + len(lead), len(lead) + len(piece))
            row = replace(item.row, id=f"{item.row.id}/{number}")
            made.append(Encoded(row, item.segment, lead + piece, prompt_tokens, max(1, len(lead))))
    return made
