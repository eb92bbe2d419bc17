"""Logs as they come: marks, line ends, blank lines, damage; never a word of the text in a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trtpipe.calibration import sources
from trtpipe.errors import ConfigError, TrtpipeError


def log(folder: Path, content: bytes | list[dict[str, Any]], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, list):
        content = b"".join(json.dumps(row).encode() + b"\n" for row in content)
    path.write_bytes(content)
    return path


def problems(*paths: Path) -> list[TrtpipeError]:
    with pytest.raises(ConfigError) as caught:
        sources.read(list(paths))
    return caught.value.each()


def test_o03_a_byte_order_mark_is_removed_and_counted(tmp_path: Path) -> None:
    rows = b"".join(b'{"prompt": "p%d"}\n' % number for number in range(6))
    reading = sources.read([log(tmp_path, b"\xef\xbb\xbf" + rows)])
    assert [row.messages[0][1] for row in reading.rows] == [f"p{number}" for number in range(6)]
    assert reading.boms_removed == 1


def test_o04_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    lines = [b'{"prompt": "p%d"}\r\n' % number for number in range(5)]
    content = b"".join([*lines[:2], b"\r\n", *lines[2:4], b"  \r\n", lines[4], b"\r\n"])
    reading = sources.read([log(tmp_path, content)])
    assert [row.messages[0][1] for row in reading.rows] == [f"p{number}" for number in range(5)]
    assert reading.blank_lines == 3


def test_o05_a_foreign_byte_is_named_with_line_and_offset(tmp_path: Path) -> None:
    path = log(tmp_path, b'{"prompt": "p"}\n{"prompt"\xac: "secret"}\n{"prompt": "q"}\n')
    (problem,) = problems(path)
    assert problem.what == "not UTF-8: byte AC at byte offset 25 of the file"
    assert problem.where == f"{path}:2:10"
    assert "secret" not in str(problem)


def test_rows_of_both_forms(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        [
            {"prompt": "a", "response": "b", "segment": "s", "id": 7},
            {"messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]},
            {"messages": [{"role": "system", "content": "e"}, {"role": "user", "content": "f"}], "id": None},
        ],
    )
    reading = sources.read([path])
    assert reading.rows == [
        sources.Row("7", "s", (("user", "a"),), "b", ""),
        sources.Row("1:2", "all", (("user", "c"),), "d", ""),
        sources.Row("1:3", "all", (("system", "e"), ("user", "f")), None, ""),
    ]
    assert reading.rows[2].chat[1] == {"role": "user", "content": "f"}
    assert reading.plain_prompts == 1


def test_a_files_name_decides_nothing(tmp_path: Path) -> None:
    rows = [{"prompt": "a"}, {"prompt": "b"}]
    assert sources.read([log(tmp_path, rows, "1.jsonl")]).rows == sources.read([log(tmp_path, rows, "2.jsonl")]).rows


def test_what_is_null_is_not_given(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "messages": None}, {"prompt": None, "messages": [{"role": "user", "content": "b"}]}]
    assert [row.messages for row in sources.read([log(tmp_path, rows)]).rows] == [(("user", "a"),), (("user", "b"),)]


def test_equal_prompts_count_once(tmp_path: Path) -> None:
    first = log(tmp_path, [{"prompt": "a", "response": "x"}, {"prompt": "b"}], "1.jsonl")
    second = log(tmp_path, [{"messages": [{"role": "user", "content": "a"}]}], "2.jsonl")
    reading = sources.read([first, second])
    assert [row.id for row in reading.rows] == ["1:1", "1:2"]
    assert reading.duplicates == 1


def test_an_id_stands_for_one_row(tmp_path: Path) -> None:
    first = log(tmp_path, [{"prompt": "a"}], "1.jsonl")
    second = log(tmp_path, [{"prompt": "b", "id": "1:1"}], "2.jsonl")
    (problem,) = problems(first, second)
    assert problem.what == f"the row's id is used before, at {first}:1"
    assert problem.where == f"{second}:1"


@pytest.mark.parametrize(
    ("line", "what", "place"),
    [
        ('{"prompt": "secret"', "not JSON: ", ":20"),
        ('["secret"]', "the row is not a JSON object", ""),
        ('{"text": "secret"}', "neither `prompt` nor `messages`", ""),
        ('{"prompt": ""}', "neither `prompt` nor `messages`", ""),
        ('{"prompt": ["secret"]}', "`prompt` is not text", ""),
        ('{"prompt": "secret", "segment": 1}', "`segment` is not text", ""),
        ('{"prompt": "secret", "id": ["secret"]}', "`id` is not text", ""),
        ('{"prompt": "secret \\ud83d"}', "half a surrogate pair at character 7", " prompt"),
        ('{"prompt": "secret", "id": "\\ud83d"}', "half a surrogate pair at character 0", " id"),
        ('{"prompt": "secret", "messages": [{"role": "user", "content": "x"}]}', "both `prompt` and `messages`", ""),
        ('{"messages": "secret"}', "`messages` is not a list", ""),
        ('{"messages": []}', "`messages` holds no prompt", ""),
        ('{"messages": [{"role": "assistant", "content": "secret"}]}', "`messages` holds no prompt", ""),
        ('{"messages": ["secret"]}', "a message is not an object", " messages[0]"),
        ('{"messages": [{"role": "secret", "content": ""}]}', "unknown role", " messages[0].role"),
        ('{"messages": [{"role": "user"}]}', "the content is not text", " messages[0].content"),
        ("[" * 100_000, "nested too deeply", ""),
        ('{"prompt": "secret", "n": ' + "1" * 5000 + "}", "nested too deeply, or a number too long", ""),
    ],
)
def test_a_faulty_row_is_named_without_its_text(tmp_path: Path, line: str, what: str, place: str) -> None:
    path = log(tmp_path, b'{"prompt": "fine"}\n' + line.encode())
    (problem,) = problems(path)
    assert problem.what.startswith(what)
    assert problem.where == f"{path}:2{place}"
    assert "secret" not in str(problem)
    assert problem.fix


def test_all_faults_come_together_the_first_twenty_in_full(tmp_path: Path) -> None:
    path = log(tmp_path, b"x\n" * 25)
    found = problems(path, tmp_path / "missing.jsonl")
    assert [one.where for one in found[:20]] == [f"{path}:{line}:1" for line in range(1, 21)]
    assert found[20].what == "and 6 more problems"


def test_no_file_and_no_rows_are_faults(tmp_path: Path) -> None:
    assert problems(tmp_path / "missing")[0].what.startswith("can't read the prompts")
    assert problems(log(tmp_path, b"\n\n"))[0].what == "no prompts in the file(s)"


def test_the_repositorys_own_prompts_are_sound() -> None:
    reading = sources.read([Path(__file__).parents[2] / "calibration/prompts/sample.jsonl"])
    assert (reading.duplicates, reading.blank_lines) == (0, 0)
