from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibration.tiny import chat_tokenizer
from stand_in_triton import stand_in_triton
from trtpipe.chain.served import _scorable, choose, require_same_ids
from trtpipe.errors import ToolFailed


def heldout(tmp_path: Path, **prompt_tokens: list[int]) -> Path:
    path = tmp_path / "heldout.jsonl"
    rows = [
        {"id": f"{segment}-{index}", "segment": segment, "prompt_tokens": tokens}
        for segment, lengths in prompt_tokens.items()
        for index, tokens in enumerate(lengths)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_segments_take_turns(tmp_path: Path) -> None:
    path = heldout(tmp_path, coding=[5, 5, 5], summary=[5], support=[5, 5])
    assert [row["id"] for row in choose(path, 5, 100)] == [
        "coding-0", "summary-0", "support-0", "coding-1", "support-1",
    ]  # fmt: skip


def test_a_prompt_that_leaves_no_room_for_an_answer_is_passed_over(tmp_path: Path) -> None:
    path = heldout(tmp_path, coding=[101, 100, 99])
    assert [row["id"] for row in choose(path, 5, 100)] == ["coding-1", "coding-2"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([256, 97, 98], None),
        ([97, 98], "instead of 256 '<s>'; BOS (256) stands 0 times in front"),
        ([256, 97, 98, 99], "position 3 is 99 '¦' instead of the end"),
    ],
)
def test_preprocessing_must_make_the_ids_of_calibration_of_each_prompt_asked(
    tmp_path: Path, made: list[int], said: str | None
) -> None:
    tokenizer = chat_tokenizer(tmp_path, add_bos_token=True)
    row = {"id": "7", "messages": [{"role": "user", "content": "x"}], "ids": [256, 97, 98, 1], "prompt_tokens": 3}
    with stand_in_triton() as server:
        server.pieces = [json.dumps({"INPUT_ID": made}).encode()]
        if said is None:
            require_same_ids(row, server.url, tokenizer)
        else:
            with pytest.raises(ToolFailed) as caught:
                require_same_ids(row, server.url, tokenizer)
            assert said in caught.value.what
            assert caught.value.where == "held-out prompt 7"
    assert server.bodies == [{"QUERY": "x", "REQUEST_OUTPUT_LEN": 1}]


def test_an_answer_that_is_encoded_to_more_tokens_is_no_longer_than_the_context(tmp_path: Path) -> None:
    row = {"id": "7", "segment": "s", "ids": [1, 2, 3, 9], "prompt_tokens": 3}
    scorable = _scorable(row, "abcdef", chat_tokenizer(tmp_path), 5)
    assert (len(scorable["ids"]), scorable["score_from"]) == (5, 3)
