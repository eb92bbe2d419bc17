"""One sample per prompt, as the server will see it, scored where it says something of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from calibration.tiny import BOS, END, TURN, chat_tokenizer, row
from trtpipe.calibration import tokens
from trtpipe.calibration.tokens import Encoded

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.chat import ChatTokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> ChatTokenizer:
    return chat_tokenizer(tmp_path)


def scored_text(item: Encoded, tokenizer: ChatTokenizer) -> str:
    return tokenizer.decode(item.ids[item.score_from :], skip_special_tokens=False)


def test_prompt_response_and_one_end(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello", response="hi"), "s", tokenizer, END)
    text = "<turn>user\nhello<end><turn>assistant\nhi<end>"
    assert tokenizer.decode(item.ids, skip_special_tokens=False) == text
    assert item.ids[-1] == END
    assert item.ids[: item.prompt_tokens] == tokenizer.encode_chat(item.row.chat)
    assert scored_text(item, tokenizer) == "hello<end><turn>assistant\nhi<end>"


def test_without_a_response_the_prompt_ends_the_row(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello"), "s", tokenizer, END)
    assert len(item.ids) == item.prompt_tokens
    assert scored_text(item, tokenizer) == "hello<end><turn>assistant\n"


@pytest.mark.parametrize("content", ["a", "assistant", "user", "n", "<end>", " padded ", "b\n"])
def test_words_of_the_template_do_not_hide_the_prompt(tokenizer: ChatTokenizer, content: str) -> None:
    item = tokens.encode(row("first user", content), "s", tokenizer, END)
    assert scored_text(item, tokenizer) == f"{content.strip()}<end><turn>assistant\n"


def test_the_bos_stands_once_and_moves_the_scores_by_one(tmp_path: Path, tokenizer: ChatTokenizer) -> None:
    plain = tokens.encode(row("hello"), "s", tokenizer, END)
    with_bos = tokens.encode(row("hello"), "s", chat_tokenizer(tmp_path, add_bos_token=True), END)
    assert with_bos.ids == [BOS, *plain.ids]
    assert with_bos.score_from == plain.score_from + 1


def test_something_is_scored_and_never_the_first_token(tmp_path: Path) -> None:
    bare = chat_tokenizer(tmp_path, template="{{ messages[0]['content'] }}")
    assert tokens.encode(row("hello"), "s", bare, END).score_from == 1
    assert tokens.encode(row("h", response="i"), "s", bare, END).score_from == 1
    fixed = chat_tokenizer(tmp_path, template="always")
    assert tokens.encode(row("hello"), "s", fixed, END).score_from == len("always") - 1


def test_o11_one_sample_per_prompt(tokenizer: ChatTokenizer) -> None:
    """Three prompts of 300 tokens under a limit of 512 stay three whole samples that begin alike."""
    overhead = len(tokens.encode(row(""), "s", tokenizer, END).ids)
    rows = [row(letter * (300 - overhead)) for letter in "xyz"]
    kept = [tokens.encode(r, "s", tokenizer, END) for r in rows]
    assert [len(item.ids) for item in kept] == [300, 300, 300]
    assert all(item.ids[0] == TURN and item.row is r for item, r in zip(kept, rows, strict=True))


def test_a_long_row_is_cut_or_becomes_windows(tokenizer: ChatTokenizer) -> None:
    long = tokens.encode(row("x" * 100, response="y", name="r"), "s", tokenizer, END)
    limit = 60
    shorter = tokens.cut(long, limit)
    assert shorter is not None
    assert (shorter.ids, shorter.prompt_tokens, shorter.score_from) == (long.ids[:limit], limit, long.score_from)
    pieces = tokens.windows(long, limit, None)
    assert [item.row.id for item in pieces] == ["r", "r/2", "r/3"][: len(pieces)]
    assert [token for item in pieces for token in item.ids] == long.ids
    with_bos = tokens.windows(long, limit, BOS)
    assert with_bos[1].ids[0] == BOS
    assert with_bos[1].ids[1:] == long.ids[limit : limit + limit - 1]
    assert all(1 <= item.score_from < len(item.ids) <= limit for item in pieces + with_bos)
    assert all(item.prompt_tokens <= len(item.ids) for item in pieces + with_bos)


def test_a_last_window_that_says_too_little_is_left_out(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("x" * 100), "s", tokenizer, END)
    assert len(tokens.windows(item, len(item.ids) - 2, None)) == 1


def test_a_row_that_a_cut_would_leave_without_scores_is_none(tokenizer: ChatTokenizer) -> None:
    item = tokens.encode(row("hello"), "s", tokenizer, END)
    assert tokens.cut(item, item.score_from) is None


def test_counts_are_the_lengths_of_what_is_encoded(tokenizer: ChatTokenizer) -> None:
    rows = [row("a" * size, response="b" * size or None) for size in (0, 3, 50)]
    for counted, one in zip(tokens.count(rows, tokenizer), rows, strict=True):
        item = tokens.encode(one, "s", tokenizer, END)
        assert (counted.prompt_tokens, counted.tokens) == (item.prompt_tokens, len(item.ids))


def test_tools_are_written_where_the_template_reads_them(tmp_path: Path) -> None:
    tools = '[{"name": "search"}]'
    reading = chat_tokenizer(tmp_path, template="{{ tools | tojson if tools }}{{ messages[0]['content'] }}")
    assert reading.reads_tools
    assert tokens.rendered(replace(row("q"), tools=tools), reading) == tools + "q"
    assert not chat_tokenizer(tmp_path).reads_tools
