"""Which prompts become golden, and that nothing of the log's text goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from calibration.tiny import BOS, TEMPLATE, chat_tokenizer, row
from trtpipe.calibration import golden, tokens
from trtpipe.calibration.row import Message, Row
from trtpipe.calibration.select import Candidate
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.chat import ChatTokenizer


def candidates(tokenizer: ChatTokenizer, rows: list[Row]) -> list[Candidate]:
    return [Candidate(counted, counted.row.segment or "", 1.0) for counted in tokens.count(rows, tokenizer)]


def test_they_are_of_all_lengths_and_of_as_many_segments_as_there_are(tmp_path: Path) -> None:
    rows = [
        row("x" * 10 * number, name=str(number), segment="rare" if number == 7 else "chat") for number in range(1, 21)
    ]
    chosen = golden.choose(candidates(chat_tokenizer(tmp_path), rows))
    assert [int(one.id) - 1 for one in chosen] == [0, 6, 8, 12, 16]
    assert golden.choose(candidates(chat_tokenizer(tmp_path), rows[::-1])) == chosen, "whatever their order"


def test_rows_that_the_server_does_not_take_are_passed_over(tmp_path: Path) -> None:
    called = Row("t", None, (Message("user", "call"),), None, "log:1", tools="[{}]")
    more = Row("m", None, (Message("assistant", "", '{"tool_calls": []}'), Message("user", "go on")), None, "log:2")
    assert golden.choose(candidates(chat_tokenizer(tmp_path), [called, more])) == []
    assert len(golden.choose(candidates(chat_tokenizer(tmp_path), [row("a", name="1"), row("b", name="2")]))) == 2


def test_roles_and_lengths_are_the_logs_and_the_words_are_not(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path, add_bos_token=True)
    talk = (Message("system", "secret rules"), Message("user", "secret " * 200), Message("assistant", "s"))
    rows = [Row("talk", "chat", (*talk, Message("user", "secret")), "secret answer", "log:1"), row("my secret")]
    made = golden.make(candidates(tokenizer, rows), tokenizer, tmp_path, "2026-01-01")
    first, second = made.prompts
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "user"]
    assert [len(message["content"]) for message in second.messages] == [12, 1400, 1, 6]
    assert [message["role"] for message in first.messages] == ["user"]
    assert "secret" not in str(made)
    assert first.messages[0]["content"] != second.messages[0]["content"][: len("my secret")], "each begins elsewhere"
    assert all(prompt.ids == tokenizer.encode_chat(prompt.messages) for prompt in made.prompts)
    assert all(prompt.ids[0] == BOS and prompt.ids.count(BOS) == 1 for prompt in made.prompts)
    assert set(made.made_with.digests) == {"tokenizer.json", "tokenizer_config.json"}


def test_a_template_that_writes_bos_twice_is_refused(tmp_path: Path) -> None:
    twice = "{{ bos_token }}{{ bos_token }}" + TEMPLATE
    tokenizer = chat_tokenizer(tmp_path, template=twice, add_bos_token=True)
    with pytest.raises(ConfigError, match="BOS twice"):
        golden.make(candidates(tokenizer, [row("a")]), tokenizer, tmp_path, "2026-01-01")
