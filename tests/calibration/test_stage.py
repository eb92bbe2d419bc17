"""From log and tokenizer to the two sets, with everything dropped or cut in the record."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from calibration.tiny import BOS, END, EOS, TEMPLATE, model_folder, settings, write_log
from trtpipe.calibration.stage import Report, stage
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact

ROWS = [
    *({"prompt": f"question {number} about {number}", "response": "yes", "segment": "chat"} for number in range(8)),
    *({"prompt": f"def f{number}(x{number})", "segment": "code"} for number in range(3)),
    {"prompt": "question 0 about 0", "segment": "chat"},
    {"prompt": "long " * 100, "segment": "code"},
]
GENERAL = [{"id": f"g{number}", "prompt": f"why {number} and {number}", "response": "so"} for number in range(9)]
REPORT = Report(json.dumps, 16)
SMALL = {"calibration_prompts": 4, "heldout_prompts_per_segment": 2, "prompt_tokens_max": 100, "general_share": 0.25}


def select(
    folder: Path, rows: bytes | list[dict[str, Any]] = ROWS, name: str = "log.jsonl", **changes: Any
) -> Artifact:
    path = write_log(folder, rows, name)
    general = write_log(folder, GENERAL, "general.jsonl")
    model = folder / "model"
    if not model.exists():
        model_folder(model)
    chosen = settings(**{**SMALL, **changes})
    return Runner(Store(folder), Silent()).obtain(stage(model, "m" * 64, [path], general, chosen, REPORT))


def rows_of(artifact: Artifact, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (artifact.path / f"{name}.jsonl").read_text().splitlines()]


def test_the_two_sets(tmp_path: Path) -> None:
    made = select(tmp_path)
    calibration, heldout = rows_of(made, "calibration"), rows_of(made, "heldout")
    assert not {row["id"] for row in calibration} & {row["id"] for row in heldout}
    for row in calibration + heldout:
        assert 1 <= row["score_from"] < len(row["ids"]) <= 100
        assert row["prompt_tokens"] <= len(row["ids"])
    assert all(row["ids"][-1] == END for row in calibration + heldout if row["response"])
    figures = made.record.figures
    assert figures["ledger"] == {
        "rows": 13,
        "kept": 7 - figures["ledger"]["cut"],
        "cut": sum(len(row["ids"]) == 100 for row in calibration + heldout),
        "windowed": 0,
        "dropped": {"exact duplicate": 1, "not needed": 5},
    }
    assert (figures["calibration_prompts"], figures["heldout_prompts"]) == (4, 4)
    assert figures["calibration_tokens"] == sum(len(row["ids"]) for row in calibration)
    assert figures["calibration_segments"]["general"] == figures["general_prompts"] == 1
    assert figures["heldout_segments"] == {"chat": 2, "code": 2}
    assert (figures["pad_id"], figures["pad_source"], figures["eos_ids"]) == (EOS, "first eos", [EOS, END])
    notes = "\n".join(made.record.notes)
    for said in ("13 row(s): ", "1 exact duplicate", "plain prompt(s)", "1 of 4 calibration prompts", "13 plain"):
        assert said in notes


def test_a_shortfall_is_refused_with_the_ledger_or_allowed_and_noted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        select(tmp_path, heldout_prompts_per_segment=3, calibration_prompts=30)
    message = str(caught.value)
    for said in (
        "15 of 30 calibration prompts",
        "2 of 3 held-out prompts of segment `code`",
        "13 row(s): ",
        "allow_short",
    ):
        assert said in message
    made = select(tmp_path, heldout_prompts_per_segment=3, calibration_prompts=30, allow_short=True)
    assert len(made.record.figures["shortfalls"]) == 2
    assert any(note.startswith("fewer than asked, as allowed: ") for note in made.record.notes)


def test_o01_a_log_of_blanks_and_headings_gives_30_of_128_blocks(tmp_path: Path) -> None:
    """1000 rows, 353 of them blank or headings; the other 647 have 61,816 tokens; 128 x 2048 are asked for."""
    overhead = len("<turn>user\n<end><turn>assistant\n") - len("<turn><end><turn>") + 3  # tokens around a prompt
    sizes = [95 - overhead] * 296 + [96 - overhead] * 351
    assert sum(sizes) + 647 * overhead == 61_816
    rows = [{"prompt": f"{number} ".ljust(size, "abcdefg"[number % 7])} for number, size in enumerate(sizes)]
    rows += [{"prompt": " " if number % 2 else f"= h{number} ="} for number in range(353)]
    asked = {
        "calibration_prompts": 646,
        "calibration_tokens_min": 128 * 2048,
        "heldout_prompts_per_segment": 1,
        "prompt_characters_min": 12,
        "general_share": 0.0,
        "near_duplicate_similarity": 1.0,
    }
    with pytest.raises(ConfigError) as caught:
        select(tmp_path, rows, **asked)
    found = re.search(r"fewer than asked: (\d+) of 262144 calibration tokens", str(caught.value))
    assert found
    assert int(found[1]) // 2048 == 30
    assert "1000 row(s): 647 kept, 0 cut, 0 windowed, 353 dropped (176 blank, 177 too short)" in str(caught.value)


def test_o02_rows_over_the_limit_are_cut_windowed_or_dropped_as_stated_and_counted(tmp_path: Path) -> None:
    rows = [{"prompt": f"{number}" * 170} for number in range(3)] + [
        {"prompt": f"{number}" * 870} for number in range(3, 10)
    ]
    ends = {}
    for policy in ("cut", "window", "drop"):
        made = select(
            tmp_path,
            rows,
            prompt_tokens_max=512,
            over_length=policy,
            general_share=0.0,
            calibration_prompts=9,
            heldout_prompts_per_segment=1,
            allow_short=True,
        )
        ends[policy] = made.record.figures["ledger"]
        assert made.record.figures["over_length_rows"] == 7
        assert any(note.startswith("finding: 70% of the rows are longer than 512 tokens") for note in made.record.notes)
        assert max(len(row["ids"]) for row in rows_of(made, "calibration")) <= 512
    assert (ends["cut"]["kept"], ends["cut"]["cut"]) == (3, 7)
    assert ends["window"]["kept"] + ends["window"]["cut"] + ends["window"]["windowed"] == 10
    assert ends["window"]["windowed"] >= 6
    assert (ends["drop"]["kept"], ends["drop"]["dropped"]) == (3, {"over the length limit": 7})


def test_o07_the_day_that_a_template_sees_is_pinned_and_recorded(tmp_path: Path) -> None:
    model_folder(tmp_path / "model", template="{{ strftime_now('%d %b %Y') }} {{ messages[0]['content'] }}")
    made = select(tmp_path, template_date="2025-03-09")
    text = bytes(rows_of(made, "heldout")[0]["ids"][:11])
    assert len(text) == 11
    assert made.record.figures["template_date"] == "2025-03-09"
    assert made.record.figures["template_date_variables"] == ["strftime_now"]
    assert any("it sees 2025-03-09 in calibration, drift check and server" in note for note in made.record.notes)
    assert made.digest == select(tmp_path, template_date="2025-03-09").digest
    assert made.digest != select(tmp_path, template_date="2025-03-10").digest


@pytest.mark.parametrize("name", ["business_set/log.jsonl", "my_cnn_dailymail_v2/train.jsonl"])
def test_o10_what_the_folder_is_called_changes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain, named = select(tmp_path / "a"), select(tmp_path / "b", name=name)
    assert (plain.digest, plain.record.key) == (named.digest, named.record.key)
    assert "cnn" not in str(named.path.relative_to(tmp_path))


def test_o12_there_is_a_general_share_or_it_is_refused_in_words(tmp_path: Path) -> None:
    assert select(tmp_path).record.figures["general_prompts"] == 1
    without = select(tmp_path, general_share=0.0)
    assert without.record.figures["general_prompts"] == 0
    assert "general" not in without.record.figures["calibration_segments"]
    assert any("no general prompts" in note for note in without.record.notes)


@pytest.mark.parametrize("template", ["", "{{ bos_token }}"])
def test_o06_every_row_begins_with_exactly_one_bos(tmp_path: Path, template: str) -> None:
    model_folder(tmp_path / "model", template=template + TEMPLATE, add_bos_token=True)
    made = select(tmp_path)
    for name in ("calibration", "heldout"):
        assert all(row["ids"].count(BOS) == 1 and row["ids"][0] == BOS for row in rows_of(made, name))


def test_bad_rows_within_the_allowed_share_are_counted_and_left_out(tmp_path: Path) -> None:
    content = b"\n".join(json.dumps(row).encode() for row in ROWS) + b"\n{broken\n"
    with pytest.raises(ConfigError, match="not JSON"):
        select(tmp_path, content)
    made = select(tmp_path, content, bad_rows_share_max=0.1)
    assert made.record.figures["ledger"]["dropped"]["unreadable: not JSON"] == 1


def test_personal_data_is_masked_before_anything_is_tokenized(tmp_path: Path) -> None:
    rows = [
        {**row, "prompt": f"mail jo{number}@x.org about {number} {row['prompt']}"} for number, row in enumerate(ROWS)
    ]
    made = select(tmp_path, rows, mask_personal_data=True)
    assert made.record.figures["masked"] == {"email": 13}
    for name in ("calibration", "heldout"):
        assert "@" not in (made.path / f"{name}.jsonl").read_text()


def test_prompt_text_stays_out_of_the_record(tmp_path: Path) -> None:
    assert "question 1" not in (select(tmp_path).path / "record.json").read_text()


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert select(tmp_path / "a").digest == select(tmp_path / "b").digest
    assert select(tmp_path / "a", seed=1).digest != select(tmp_path / "b").digest


def test_what_can_not_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the calibration set is empty"):
        select(tmp_path, prompt_tokens_max=8, over_length="drop")
    with pytest.raises(ConfigError, match="prompt file not found"):
        stage(tmp_path, "", [tmp_path / "no"], tmp_path / "no", settings(), REPORT)
    with pytest.raises(ConfigError, match=r"the row's id is used before, at .*:1\n"):
        select(tmp_path, [{"prompt": "a", "id": "1:2"}, {"prompt": "b"}])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"template": None}, "the tokenizer has no chat template"),
        ({"template": "{{ raise_exception('no') }}"}, "the chat template fails on a single user's message"),
        (
            {"template": "{{ raise_exception('no') if 'question' in messages[0].content }}"},
            "the chat template refuses the row",
        ),
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
