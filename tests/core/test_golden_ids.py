"""Ids of golden prompts: kept, compared, and what is said where they part."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from trtpipe.core.golden_ids import FILE, Golden, GoldenError, GoldenPrompt, Surroundings, carry, difference

if TYPE_CHECKING:
    from pathlib import Path

HERE = Surroundings({"tokenizer.json": "a", "chat_template.jinja": "b"}, {"tokenizers": "0.22.1"}, "2026-01-01")
ONE = GoldenPrompt([{"role": "user", "content": "one"}], [1, 5, 6])
TWO = GoldenPrompt([{"role": "system", "content": "s"}, {"role": "user", "content": "two"}], [1, 7])
GOLDEN = Golden([ONE, TWO], 1, HERE)
SPELLED = {1: "<s>", 5: "o", 6: "ne", 7: "two"}


def test_what_is_written_is_read_back_and_carried_along(tmp_path: Path) -> None:
    (tmp_path / "next").mkdir()
    assert not carry(tmp_path, tmp_path / "next")
    GOLDEN.write(tmp_path)
    assert carry(tmp_path, tmp_path / "next")
    assert Golden.read(tmp_path / "next" / FILE) == GOLDEN


@pytest.mark.parametrize("content", [None, "{", "{}", '{"prompts": [{"ids": []}]}', '{"prompts": 1}'])
def test_a_file_that_is_missing_or_damaged_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / FILE).write_text(content)
    with pytest.raises(GoldenError, match="can't be read"):
        Golden.read(tmp_path / FILE)


def test_a_client_sends_a_single_message_as_text_and_a_conversation_as_a_document() -> None:
    assert ONE.text_input == "one"
    assert json.loads(TWO.text_input) == {"messages": TWO.messages}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([1, 5, 6], None),
        ([5, 6], "position 0 is 5 'o' instead of 1 '<s>'; BOS (1) stands 0 times in front instead of once"),
        ([1, 1, 5, 6], "position 1 is 1 '<s>' instead of 5 'o'; BOS (1) stands 2 times in front instead of once"),
        ([1, 5, 7], "position 2 is 7 'two' instead of 6 'ne'"),
        ([1, 5], "position 2 is the end instead of 6 'ne'"),
        ([1, 5, 6, 99], "position 3 is 99 None instead of the end"),
    ],
)
def test_the_place_where_ids_part_and_both_tokens_are_named(found: list[int], said: str | None) -> None:
    assert difference(ONE.ids, found, 1, SPELLED.get) == said


def test_equal_ids_pass_whatever_else_has_changed() -> None:
    GOLDEN.require(lambda prompt: prompt.ids, SPELLED.get, Surroundings({}, {}, "2027-01-01"))


def test_the_first_prompt_that_differs_is_named_with_what_has_changed_and_without_its_text() -> None:
    here = replace(
        HERE, digests={"tokenizer.json": "a", "chat_template.jinja": "c"}, versions={"tokenizers": "0.23.0"},
        template_date="2026-02-02",
    )  # fmt: skip
    with pytest.raises(GoldenError) as caught:
        GOLDEN.require(lambda prompt: [1, 5, 6], SPELLED.get, here)
    assert str(caught.value) == (
        "golden prompt 2 of 2 (2 message(s), 2 ids): position 1 is 5 'o' instead of 7 'two'. Since calibration: "
        "chat_template.jinja is another file; tokenizers is 0.23.0, and was 0.22.1; "
        "the template's date is 2026-02-02, and was 2026-01-01"
    )
    with pytest.raises(GoldenError, match="neither files nor libraries have changed"):
        GOLDEN.require(lambda prompt: [], SPELLED.get, HERE)
