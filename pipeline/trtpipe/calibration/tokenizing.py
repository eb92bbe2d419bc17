"""The model's tokenizer as calibration needs it: a chat template, an end of answers, a pinned date, all recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def load(model: Path, date: str) -> ChatTokenizer:
    """Read the tokenizer; its template sees ``date``. Raises ConfigError where it can't chat."""
    try:
        tokenizer = ChatTokenizer.load(model, date=date)
    except ChatError as fault:
        raise ConfigError(
            str(fault), where=str(model), fix="correct that file of the model folder, or add what is missing"
        ) from None
    if not tokenizer.has_template:
        raise ConfigError(
            "the tokenizer has no chat template",
            where=str(model / "tokenizer_config.json"),
            fix="add `chat_template`, or a chat_template.jinja, to the model folder",
        )
    try:
        tokenizer.render([{"role": "user", "content": "Hello"}])
    except ChatError as fault:
        raise ConfigError(
            f"the chat template fails on a single user's message: {fault}",
            where=str(model),
            fix="correct the model folder's chat template; no row of the log is at fault",
        ) from None
    return tokenizer


def end_of_answer(tokenizer: ChatTokenizer, model: Path) -> int:
    """Return the token that ends an answer. Raises ConfigError where there is none."""
    if tokenizer.end_id < 0:
        raise ConfigError(
            "the model has no token that ends an answer",
            where=str(model / "tokenizer_config.json"),
            fix="add `eos_token` there, or `eos_token_id` to config.json",
        )
    return tokenizer.end_id


def figures(tokenizer: ChatTokenizer, date: str) -> dict[str, Any]:
    return {
        "bos_id": tokenizer.bos_id,
        "pad_id": tokenizer.pad_id,
        "pad_source": tokenizer.pad_source,
        "eos_ids": sorted(tokenizer.eos_ids),
        "template_date_variables": sorted(tokenizer.date_variables),
        "template_date": date if "strftime_now" in tokenizer.date_variables else None,
    }


def notes(tokenizer: ChatTokenizer, date: str) -> Iterable[str]:
    if "strftime_now" in tokenizer.date_variables:
        yield (
            f"the chat template reads the day (strftime_now): it sees {date} in calibration, drift check and server;"
            " prompts.template_date sets it"
        )
    if "date_string" in tokenizer.date_variables:
        yield "the chat template reads date_string, which nothing sets: its own fixed default holds everywhere"
