"""Choose the golden prompts: the roles and lengths of prompts of the log, with the words of this file.

A release carries them to wherever it is served, and ids are text to whoever has the tokenizer. So neither the words of
the log nor their ids leave the prompt set; that the real prompts get the same ids is asked by the drift check.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from trtpipe.calibration import tokens
from trtpipe.calibration.row import Message
from trtpipe.core.golden_ids import Golden, GoldenPrompt, Surroundings
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.calibration.row import Row
    from trtpipe.calibration.select import Candidate
    from trtpipe.core.chat import ChatTokenizer

COUNT = 5
# Every script and kind of sign that tokenizers treat in a way of their own.
WORDS = (
    "Please check order 48-1173 before 9:30; it's late, isn't it? Die Straße heißt „Große Gärten“, à bientôt — déjà. "
    "Сколько это стоит? 请在三天之内回复这封邮件。ご確認ください。배송이 늦어졌습니다. كم يستغرق التوصيل؟ मूल्य कितना है? "
    "👩\u200d💻👍🏽 e\u0301\n\n  def total(items):\n\treturn sum(x['price'] * 1.19 for x in items)  # <b>&amp;</b>\n"
)


def make(chosen: list[Candidate], tokenizer: ChatTokenizer, model: Path, template_date: str) -> Golden:
    """Make the golden prompts of calibration rows, in the order of their lengths.

    Raises ConfigError where the template puts more than one BOS in front.
    """
    rows = [_reworded(row, number) for number, row in enumerate(choose(chosen))]
    prompts = [GoldenPrompt(row.chat, tokenizer.encode_plain(tokens.rendered(row, tokenizer))) for row in rows]
    if tokenizer.bos_id is not None and any(prompt.ids[:2] == [tokenizer.bos_id] * 2 for prompt in prompts):
        raise ConfigError(
            "the chat template begins a prompt with BOS twice", where=str(model), fix="correct the chat template"
        )
    return Golden(prompts, tokenizer.bos_id, Surroundings.here(model, template_date))


def choose(chosen: list[Candidate]) -> list[Row]:
    """Return a row of each fifth by length, of segments that no earlier one is of as far as there are such.

    Rows with tools are passed over: the server's contract has messages only.
    """
    served = [one for one in chosen if not one.row.tools and not any(message.more for message in one.row.messages)]
    served.sort(key=lambda one: (one.counted.prompt_tokens, one.row.id))
    taken: Counter[str] = Counter()
    rows = []
    for part in range(COUNT):
        fifth = served[part * len(served) // COUNT : (part + 1) * len(served) // COUNT]
        if fifth:
            picked = min(fifth, key=lambda one: taken[one.segment])
            taken[picked.segment] += 1
            rows.append(picked.row)
    return rows


def _reworded(row: Row, number: int) -> Row:
    """Replace each message's words by as many characters of ``WORDS``, beginning elsewhere in each."""
    messages, start = [], number * len(WORDS) // COUNT
    for message in row.messages:
        length = len(message.content)
        text = WORDS * (2 + length // len(WORDS))
        messages.append(Message(message.role, text[start : start + length]))
        start = (start + length) % len(WORDS)
    return replace(row, messages=tuple(messages), place=f"golden prompt {number + 1}, with the roles of {row.place}")
