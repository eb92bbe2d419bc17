"""Logs as they come: marks, line ends, blank lines, damage; the fast path and the strict reader agree."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.read_logs import log_of, problems, read
from calibration.tiny import write_log
from trtpipe.calibration import chunks
from trtpipe.calibration.row import Message, Row, rank
from trtpipe.errors import ConfigError


def contents(*paths: Path) -> list[str]:
    return [row.messages[0].content for row in read(*paths).rows]


def test_o03_a_byte_order_mark_is_removed_and_counted(tmp_path: Path) -> None:
    rows = b"".join(b'{"prompt": "p%d"}\n' % number for number in range(6))
    path = write_log(tmp_path, b"\xef\xbb\xbf" + rows)
    assert contents(path) == [f"p{number}" for number in range(6)]
    assert read(path).boms_removed == 1


def test_o04_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    lines = [b'{"prompt": "p%d"}\r\n' % number for number in range(5)]
    path = write_log(tmp_path, b"".join([*lines[:2], b"\r\n", *lines[2:4], b"  \r\n", lines[4], b"\r\n"]))
    for fast in (True, False):
        found = read(path, fast=fast)
        assert [row.messages[0].content for row in found.rows] == [f"p{number}" for number in range(5)]
        assert [row.id for row in found.rows] == ["1:1", "1:2", "1:4", "1:5", "1:7"]
        assert found.blank_lines == 3


def test_o05_a_foreign_byte_is_named_with_line_and_offset(tmp_path: Path) -> None:
    path = write_log(tmp_path, b'{"prompt": "p"}\n{"prompt"\xac: "secret"}\n{"prompt": "q"}\n')
    (problem,) = problems(path)
    assert problem.what == "not UTF-8: byte AC at byte offset 25 of the file"
    assert problem.where == f"{path}:2:10"
    assert "secret" not in str(problem)


def test_rows_of_both_common_shapes(tmp_path: Path) -> None:
    path = write_log(
        tmp_path,
        [
            {"prompt": "a", "response": "b", "segment": "s", "id": 7},
            {"messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]},
            {"messages": [{"role": "system", "content": "e"}, {"role": "user", "content": "f"}], "id": None},
        ],
    )
    for fast in (True, False):
        found = read(path, fast=fast)
        assert found.rows == [
            Row("7", "s", (Message("user", "a"),), "b", ""),
            Row("1:2", None, (Message("user", "c"),), "d", ""),
            Row("1:3", None, (Message("system", "e"), Message("user", "f")), None, ""),
        ]
        assert found.fast_rows == (3 if fast else 0)
    assert found.rows[2].chat[1] == {"role": "user", "content": "f"}


def test_what_is_null_is_not_given(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "messages": None}, {"prompt": None, "messages": [{"role": "user", "content": "b"}]}]
    assert contents(write_log(tmp_path, rows)) == ["a", "b"]


FAULTS = [
    ('{"prompt": "secret"', "not JSON: ", ":20"),
    ('["secret"]', "the row is not a JSON object", ""),
    ('{"text": "secret"}', "none of `prompt`", ""),
    ('{"prompt": ["secret"]}', "`prompt` is not text", " prompt"),
    ('{"prompt": "secret", "segment": 1}', "`segment` is not text", " segment"),
    ('{"prompt": "secret", "id": ["secret"]}', "`id` is not text", " id"),
    ('{"prompt": "secret", "id": 1.5}', "`id` is not text", " id"),
    ('{"prompt": true}', "`prompt` is not text", " prompt"),
    ('{"prompt": "secret \\ud83d"}', "half a surrogate pair at character 7", " prompt"),
    ('{"prompt": "secret", "id": "\\ud83d"}', "half a surrogate pair at character 0", " id"),
    ('{"prompt": "x", "messages": [{"role": "user", "content": "secret"}]}', "both `prompt` and `messages`", ""),
    ('{"messages": "secret"}', "`messages` is not a list", " messages"),
    ('{"messages": []}', "the conversation holds no prompt", ""),
    ('{"messages": [{"role": "assistant", "content": "secret"}]}', "the conversation holds no prompt", ""),
    ('{"messages": ["secret"]}', "a message is not an object", " messages[0]"),
    ('{"messages": [{"role": "secret", "content": ""}]}', "unknown role", " messages[0].role"),
    ('{"messages": [{"role": "user"}]}', "the content is not text", " messages[0].content"),
    ('{"messages": [{"role": "user", "content": 5}]}', "the content is not text", " messages[0].content"),
    ("[" * 100_000, "nested too deeply", ""),
    ('{"prompt": "secret", "n": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply", ""),
    ('{"prompt": "secret", "n": ' + "1" * 5000 + "}", "nested too deeply, or a number too long", ""),
]


@pytest.mark.parametrize(("line", "what", "place"), FAULTS)
def test_a_faulty_row_is_named_without_its_text(tmp_path: Path, line: str, what: str, place: str) -> None:
    path = write_log(tmp_path, b'{"prompt": "fine"}\n' + line.encode())
    (problem,) = problems(path)
    assert problem.what.startswith(what)
    assert problem.where == f"{path}:2{place}"
    assert "secret" not in str(problem)
    assert problem.fix


def test_all_faults_come_together_the_first_twenty_in_full(tmp_path: Path) -> None:
    path = write_log(tmp_path, b'{"prompt": "p"}\n' + b"x\n" * 25)
    found = problems(path)
    assert [one.where for one in found[:20]] == [f"{path}:{line}:1" for line in range(2, 22)]
    assert found[20].what == "and 5 more problems"


def test_a_byte_offset_counts_from_the_start_of_the_file_in_any_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks.chunks, "__kwdefaults__", {"chunk_bytes": 64})
    rows = b"".join(b'{"prompt": "number %d"}\n' % number for number in range(50))
    path = write_log(tmp_path, rows + b'{"prompt": "\xff"}\n' + rows)
    found = read(path)
    assert len(found.rows) == 100
    assert found.bad[0].what == f"not UTF-8: byte FF at byte offset {len(rows) + 12} of the file"
    assert found.bad[0].where == f"{path}:51:13"


def test_csv_records_with_line_ends_commas_and_json(tmp_path: Path) -> None:
    messages = json.dumps([{"role": "user", "content": 'two\nlines, "quoted"'}])
    quoted = '"' + messages.replace('"', '""') + '"'
    text = f'id,prompt,response,messages\r\n1,"a, b","c\r\nd",\r\n\r\n2,,,{quoted}\r\n3,one\r\n'
    found = read(write_log(tmp_path, b"\xef\xbb\xbf" + text.encode(), "log.csv"))
    assert [(row.id, row.messages[0].content, row.response) for row in found.rows] == [
        ("1", "a, b", "c\r\nd"),
        ("2", 'two\nlines, "quoted"', None),
    ]
    assert found.blank_lines == found.boms_removed == 1
    (bad,) = found.bad
    assert (bad.what, bad.where) == ("2 cell(s), but the header has 4", f"{tmp_path / 'log.csv'}:6")


def test_a_csv_column_named_twice_is_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path, b"\nprompt,segment,prompt\na,b,c\n", "log.csv")
    with pytest.raises(ConfigError, match="the header names `prompt` more than once") as caught:
        read(path)
    assert caught.value.where == f"{path}: line 2"


def test_empty_columns_at_the_end_of_a_csv_file_do_no_harm(tmp_path: Path) -> None:
    found = read(write_log(tmp_path, b"prompt,,\na,,\n", "log.csv"))
    assert [row.messages[0].content for row in found.rows] == ["a"]


def test_a_foreign_byte_in_csv_spoils_its_record_only(tmp_path: Path) -> None:
    content = b'prompt\n"one\ntwo"\n"three\nfo\xe9ur"\nfive\n'
    found = read(write_log(tmp_path, content, "log.csv"))
    assert [row.messages[0].content for row in found.rows] == ["one\ntwo", "five"]
    (bad,) = found.bad
    assert bad.what == f"not UTF-8: byte E9 at byte offset {content.index(0xE9)} of the file"
    assert bad.where == f"{tmp_path / 'log.csv'}:5:3"


TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["[1]", "{}", "true", "7", "-1.5e3", "null", "\x1c", "\u2003", " \t\r\n", "\0"]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT, st.lists, max_leaves=3
)
ODD = TEXT | JSON
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "developer"]) | ODD, "content": ODD},
    optional={"name": ODD, "tool_calls": ODD, "more": ODD},
)
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "prompt": ODD,
        "messages": st.lists(MESSAGE | ODD, max_size=3) | ODD,
        "response": ODD,
        "segment": ODD,
        "id": ODD,
        "tools": ODD,
        "text_input": ODD,
        "other": ODD,
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(DOCUMENT, max_size=6), st.booleans(), st.sampled_from([None, "plain", "chat"]))
def test_the_fast_path_and_the_strict_reader_give_the_same(
    documents: list[dict[str, Any]], ascii_only: bool, shape: str | None
) -> None:
    lines = [json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "replace") for document in documents]
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder), b"\n".join(lines))
        fast, strict = read(path, shape=shape), read(path, shape=shape, fast=False)
    assert fast.rows == strict.rows
    assert sorted(bad.where for bad in fast.bad) == sorted(bad.where for bad in strict.bad)
    assert len(fast.rows) + len(fast.bad) == len(documents)


@settings(max_examples=25, deadline=None)
@given(st.lists(DOCUMENT, min_size=1, max_size=6))
def test_both_paths_measure_alike(documents: list[dict[str, Any]]) -> None:

    lines = [json.dumps(document).encode() for document in documents]
    with TemporaryDirectory() as folder:
        log = log_of(write_log(Path(folder), b"\n".join(lines)))
        for batch in log.batches(log.files[0]):
            for position, row in enumerate(batch.rows(list(range(len(batch.identities))))):
                assert batch.identities[position] == rank(row.canonical, 0)
                assert batch.segments[position] == row.segment
                assert batch.prompt_characters[position] == row.prompt_characters
                assert batch.asked_characters[position] == row.asked_characters
                assert batch.response_characters[position] == len(row.response or "")


@pytest.mark.parametrize("sender", [["human"], {}, None, 3])
def test_a_sharegpt_turn_of_an_odd_sender_is_one_bad_row(tmp_path: Path, sender: Any) -> None:
    good = {"conversations": [{"from": "human", "value": "a"}]}
    odd = {"conversations": [{"from": sender, "value": "a"}]}
    path = write_log(tmp_path, [good, odd, good])
    assert len(read(path).rows) == 2
    (problem,) = problems(path)
    assert str(problem.where).startswith(f"{path}:2")
