"""From log and tokenizer to the two sets, with everything dropped or cut in the record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from calibration.tiny import END, EOS, model_folder
from trtpipe.calibration.stage import Selection, stage
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact

ROWS = [
    *({"prompt": f"question {number}", "response": "yes", "segment": "chat"} for number in range(8)),
    *({"prompt": f"def f{number}", "segment": "code"} for number in range(3)),
    {"prompt": "question 0", "segment": "chat"},
    {"prompt": "long " * 100, "segment": "code"},
]


def select(folder: Path, rows: list[dict[str, Any]] = ROWS, **changes: Any) -> Artifact:
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    selection = Selection(
        **{
            "calibration_prompts_max": 4,
            "heldout_prompts_per_segment": 3,
            "prompt_tokens_max": 100,
            "over_length": "cut",
            "seed": 0,
            **changes,
        }
    )
    model = folder / "model"
    if not model.exists():
        model_folder(model)
    return Runner(Store(folder), Silent()).obtain(stage(model, "m" * 64, [path], selection))


def rows_of(artifact: Artifact, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (artifact.path / f"{name}.jsonl").read_text().splitlines()]


def test_the_two_sets(tmp_path: Path) -> None:
    made = select(tmp_path)
    calibration, heldout = rows_of(made, "calibration"), rows_of(made, "heldout")
    assert not {row["id"] for row in calibration} & {row["id"] for row in heldout}
    for row in calibration + heldout:
        assert 1 <= row["score_from"] < len(row["ids"]) <= 100
        assert row["prompt_tokens"] <= len(row["ids"])
    assert all(row["ids"][-1] == END for row in calibration + heldout if row["segment"] == "chat")
    assert made.record.figures == {
        "calibration_prompts": 4,
        "calibration_tokens": sum(len(row["ids"]) for row in calibration),
        "calibration_segments": {
            segment: sum(row["segment"] == segment for row in calibration) for segment in ("chat", "code")
        },
        "heldout_prompts": 5,
        "heldout_tokens": sum(len(row["ids"]) for row in heldout),
        "heldout_segments": {"chat": 3, "code": 2},
        "rows_read": 13,
        "exact_duplicates_dropped": 1,
        "over_length_cut": sum(len(row["ids"]) == 100 for row in calibration + heldout),
        "over_length_dropped": 0,
        "rows_not_needed": 3,
        "blank_lines": 1,
        "boms_removed": 0,
        "pad_id": EOS,
        "pad_source": "first eos",
        "eos_ids": [EOS, END],
    }
    notes = "\n".join(made.record.notes)
    for said in ("segment `code`: 1 held-out", "1 blank line", "1 exact duplicate", "plain prompt(s)"):
        assert said in notes


def test_prompt_text_stays_out_of_the_record(tmp_path: Path) -> None:
    assert "question" not in (select(tmp_path).path / "record.json").read_text()


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert select(tmp_path / "a").digest == select(tmp_path / "b").digest
    assert select(tmp_path / "a", seed=1).digest != select(tmp_path / "b").digest


def test_what_can_not_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the calibration set is empty"):
        select(tmp_path, prompt_tokens_max=8, over_length="drop")
    with pytest.raises(ConfigError, match="prompt file not found"):
        stage(tmp_path, "", [tmp_path / "no"], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"template": None}, "the tokenizer has no chat template"),
        ({"template": "{{ raise_exception('no') }}"}, "the chat template refuses the row"),
        ({"template": "{% if %}"}, "error in line 1"),
        ({"eos_token": None, "pad_token": "</s>"}, "no token that ends an answer"),
    ],
)
def test_a_model_that_can_not_chat_is_refused(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    (model_folder(tmp_path / "model", **settings) / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=said) as caught:
        select(tmp_path)
    assert caught.value.where
    assert "question" not in str(caught.value)
