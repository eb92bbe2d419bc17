"""How much of the prefill a prefix cache saves on these prompts, and what text keeps it from saving more."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from statistics import median
from typing import TYPE_CHECKING, Any

from trtpipe.calibration import volatile

if TYPE_CHECKING:
    from trtpipe.core.chat import ChatTokenizer

FIELDS_SHOWN = 5


@dataclass(frozen=True)
class Reuse:
    """Tokens of prompts that a cache of unlimited size would not compute again, the prompts coming in this order."""

    prompts: int
    prompt_tokens: int
    reused_tokens: int

    @property
    def share(self) -> float:
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True)
class Cut:
    """A volatile field that ends prefixes. ``token``: its median position. ``whole_blocks_before``: blocks up to it.

    ``prompts_share``: in how many prompts it stands. ``share_if_moved``: reuse if it stood at the end of each prompt.
    """

    kind: str
    token: int
    whole_blocks_before: int
    prompts_share: float
    values: int
    share_if_moved: float
    share_regained: float


@dataclass(frozen=True)
class Prefixes:
    """``shared_by_most``: leading tokens that at least half of the prompts begin with, in whole blocks."""

    block_tokens: int
    reuse: Reuse
    shared_by_most_tokens: int
    cuts: list[Cut]

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"reuse_share": self.reuse.share}


def reuse(prompts: Sequence[Sequence[int]], block_tokens: int) -> Reuse:
    """Play the prompts through a prefix cache as engines keep it: whole blocks, and never a prompt's last token.

    The last token is always computed, for its output is the first token of the answer.
    """
    seen: set[bytes] = set()
    total = reused = 0
    for ids in prompts:
        total += len(ids)
        hits, hitting = 0, True
        usable = (len(ids) - 1) // block_tokens
        for number, block in enumerate(_blocks(ids, block_tokens)):
            hitting = hitting and number < usable and block in seen
            hits += hitting
            seen.add(block)
        reused += hits * block_tokens
    return Reuse(len(prompts), total, reused)


def _blocks(ids: Sequence[int], block_tokens: int) -> list[bytes]:
    """Return an identity for each whole block that stands for it and all before it."""
    found = []
    identity = b""
    for start in range(0, len(ids) - block_tokens + 1, block_tokens):
        tokens = array("q", ids[start : start + block_tokens]).tobytes()
        identity = blake2b(identity + tokens, digest_size=16).digest()
        found.append(identity)
    return found


def analyse(texts: Sequence[str], tokenizer: ChatTokenizer, block_tokens: int) -> Prefixes:
    """Analyse rendered prompts, in the order in which they were sent."""
    ids = tokenizer.encode_many(texts)
    now = reuse(ids, block_tokens)
    fields = volatile.find(texts)
    cuts = [_cut(field, texts, ids, now, tokenizer, block_tokens) for field in fields[: 2 * FIELDS_SHOWN]]
    cuts = sorted((cut for cut in cuts if cut.share_regained > 0), key=lambda cut: -cut.share_regained)
    return Prefixes(block_tokens, now, _shared_by_most(ids, block_tokens), cuts[:FIELDS_SHOWN])


def _cut(
    field: volatile.VolatileField,
    texts: Sequence[str],
    ids: Sequence[Sequence[int]],
    now: Reuse,
    tokenizer: ChatTokenizer,
    block_tokens: int,
) -> Cut:
    rows = list(field.spans)
    heads = tokenizer.encode_many([texts[row][: field.spans[row].start] for row in rows])
    moved_texts = [_moved(texts[row], field.spans[row]) for row in rows]
    moved = list(ids)
    for row, found in zip(rows, tokenizer.encode_many(moved_texts), strict=True):
        moved[row] = found
    after = reuse(moved, block_tokens)
    token = round(median(map(len, heads)))
    return Cut(
        kind=field.kind,
        token=token,
        whole_blocks_before=token // block_tokens,
        prompts_share=len(rows) / len(texts),
        values=field.values,
        share_if_moved=after.share,
        share_regained=after.share - now.share,
    )


def _moved(text: str, span: volatile.Span) -> str:
    """Return the text with the field at its end."""
    return text[: span.start] + text[span.end :] + text[span.start : span.end]


def _shared_by_most(ids: Sequence[Sequence[int]], block_tokens: int) -> int:
    """Return how many leading tokens the commonest chain of blocks has that half of the prompts begin with."""
    group = [list(prompt) for prompt in ids]
    depth = 0
    while True:
        heads: dict[tuple[int, ...], list[list[int]]] = {}
        for prompt in group:
            head = tuple(prompt[depth : depth + block_tokens])
            if len(head) == block_tokens:
                heads.setdefault(head, []).append(prompt)
        largest = max(heads.values(), key=len, default=[])
        if not ids or 2 * len(largest) < len(ids):
            return depth
        group, depth = largest, depth + block_tokens
