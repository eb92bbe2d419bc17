from __future__ import annotations

import json
from pathlib import Path

from trtpipe.chain.served import choose


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
