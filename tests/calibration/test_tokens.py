"""One sample per prompt, as the server will see it, scored where it says something of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from calibration.tiny import BOS, END, TURN, chat_tokenizer, row
from trtpipe.calibration import tokens
from trtpipe.calibration.tokens import Encoded, Lengths

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.chat import ChatTokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> ChatTokenizer:
    return chat_tokenizer(tmp_path)


def scored_text(item: Encoded, tokenizer: ChatTokenizer) -> str:
    return tokenizer.decode(item.ids[item.score_from :], skip_special_tokens=False)


def test_prompt_response_and_one_end(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello", response="hi"), tokenizer, END)
    text = "<turn>user\nhello<end><turn>assistant\nhi<end>"
    assert tokenizer.decode(item.ids, skip_special_tokens=False) == text
    assert item.ids[-1] == END
    assert item.ids[: item.prompt_tokens] == tokenizer.encode_chat(item.row.chat)
    assert scored_text(item, tokenizer) == "hello<end><turn>assistant\nhi<end>"


def test_without_a_response_the_prompt_ends_the_row(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello"), tokenizer, END)
    assert len(item.ids) == item.prompt_tokens
    assert scored_text(item, tokenizer) == "hello<end><turn>assistant\n"


@pytest.mark.parametrize("content", ["a", "assistant", "user", "n", "<end>", " padded ", "b\n"])
def test_words_of_the_template_do_not_hide_the_prompt(tokenizer: ChatTokenizer, content: str) -> None:
    item = tokens.encode(row("first user", content), tokenizer, END)
    assert scored_text(item, tokenizer) == f"{content.strip()}<end><turn>assistant\n"


def test_the_bos_stands_once_and_moves_the_scores_by_one(tmp_path: Path, tokenizer: ChatTokenizer) -> None:
    plain = tokens.encode(row("hello"), tokenizer, END)
    with_bos = tokens.encode(row("hello"), chat_tokenizer(tmp_path, add_bos_token=True), END)
    assert with_bos.ids == [BOS, *plain.ids]
    assert with_bos.score_from == plain.score_from + 1


def test_something_is_scored_and_never_the_first_token(tmp_path: Path) -> None:
    bare = chat_tokenizer(tmp_path, template="{{ messages[0]['content'] }}")
    assert tokens.encode(row("hello"), bare, END).score_from == 1
    assert tokens.encode(row("h", response="i"), bare, END).score_from == 1
    fixed = chat_tokenizer(tmp_path, template="always")
    assert tokens.encode(row("hello"), fixed, END).score_from == len("always") - 1


def test_o11_one_sample_per_prompt(tokenizer: ChatTokenizer) -> None:
    """Three prompts of 300 tokens under a limit of 512 stay three whole samples that begin alike."""
    overhead = len(tokens.encode(row(""), tokenizer, END).ids)
    rows = [row(letter * (300 - overhead)) for letter in "xyz"]
    lengths = Lengths()
    kept = tokens.limit([tokens.encode(r, tokenizer, END) for r in rows], 512, "cut", lengths)
    assert [len(item.ids) for item in kept] == [300, 300, 300]
    assert all(item.ids[0] == TURN and item.row is r for item, r in zip(kept, rows, strict=True))
    assert lengths == Lengths(cut=0, dropped=0)


def test_the_length_limit_cuts_or_drops_and_counts(tokenizer: ChatTokenizer) -> None:
    short, long = (tokens.encode(row("x" * size, response="y"), tokenizer, END) for size in (5, 100))
    exact = len(short.ids)
    lengths = Lengths()
    kept = tokens.limit([short, long], exact, "cut", lengths)
    assert kept[0] is short
    assert (kept[1].ids, kept[1].prompt_tokens) == (long.ids[:exact], exact)
    assert kept[1].score_from == long.score_from
    assert tokens.limit([short, long], exact, "drop", lengths) == [short]
    assert lengths == Lengths(cut=1, dropped=1)


def test_a_row_that_a_cut_would_leave_without_scores_is_dropped(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello"), tokenizer, END)
    lengths = Lengths()
    assert tokens.limit([item], item.score_from, "cut", lengths) == []
    assert lengths == Lengths(dropped=1)
