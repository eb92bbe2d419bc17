"""Scalars as YAML 1.2 has them, positions for every value, and no silent surprise."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.config import yaml
from trtpipe.errors import ConfigError

FILE = Path("x.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("0123", 123),
        ("-0", 0),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-07-26", "2026-07-26"),
        ("1e-5", 1e-5),
        (".5", 0.5),
        ("1.", 1.0),
        (".inf", ".inf"),
        ("1.2.3", "1.2.3"),
        ("=", "="),
        ("", ""),
        ("[a.jsonl, 2]", ["a.jsonl", 2]),
        ("'1'", "1"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    found = yaml.scalar(text)
    assert (found, type(found)) == (value, type(value))


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
def test_json_scalars_are_yaml_scalars(value: Any) -> None:
    found = yaml.scalar(json.dumps(value))
    assert (found, type(found)) == (value, type(value))


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")))
def test_quoted_text_stays_text(text: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    found = yaml.parse(f"key: {quoted}", FILE).data["key"]
    assert isinstance(found, str)
    if not set(text) & set("\u2028\u2029\x85"):  # YAML's line breaks, folded to a space
        assert found == text


@given(st.text(alphabet="01.+-eExo_:~nulltrue ", max_size=8))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ConfigError):
        yaml.scalar(text)


def test_every_value_has_its_position() -> None:
    document = yaml.parse("a: 1\nb:\n  - x\n  - c: 2\n", FILE)
    assert document.data == {"a": 1, "b": ["x", {"c": 2}]}
    assert document.where(("b", 1, "c")) == "x.yaml:4:5"
    assert document.where(("b", 0)) == "x.yaml:3:5"
    assert document.where(("b", "missing", "deeper")) == "x.yaml:2:1"
    assert document.where(()) == "x.yaml:1:1"


@pytest.mark.parametrize(
    ("text", "said", "where"),
    [
        ("a: 1\nb: 2\na: 3\n", "`a` is given twice, first on line 1", "x.yaml:3:1"),
        ("a:\n  b: 1\n  b: 1\n", "`b` is given twice, first on line 2", "x.yaml:3:3"),
        ("a: [1\n", "not valid YAML", "x.yaml:2:1"),
        ("a: b: c", "not valid YAML", "x.yaml:1:5"),
        ("a: 1\n---\nb: 2\n", "single document", "x.yaml:2:1"),
        ("a: 1\n1: x", "a key is not text", "x.yaml:2:1"),
        ("true: x", "a key is not text", "x.yaml:1:1"),
        ("? [a]\n: x", "a key is not text", "x.yaml:1:3"),
        ("a: &x [*x]", "anchors", "x.yaml:1:4"),
        ("a: *x", "anchors", "x.yaml:1:4"),
        ("a: !!python/name:os.system x", "tags", "x.yaml:1:4"),
        ("a: \x00", "not valid YAML", "x.yaml"),
        ("[" * 3000, "not readable", "x.yaml"),
        ("a: " + "1" * 5000, "not readable", "x.yaml"),
    ],
)
def test_faults_have_a_place(text: str, said: str, where: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        yaml.parse(text, FILE)
    assert caught.value.where == where
    assert caught.value.fix


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert yaml.read(path).data == {"a": 1}
    path.write_bytes(b"a: \xac")
    with pytest.raises(ConfigError, match="not UTF-8: byte AC at offset 3"):
        yaml.read(path)
    with pytest.raises(ConfigError) as caught:
        yaml.read(tmp_path / "x.yml")
    assert caught.value.fix == f"did you mean {path}?"
    for unreadable in (tmp_path, path / "y.yaml"):
        with pytest.raises(ConfigError, match="can't be read"):
            yaml.read(unreadable)


def test_an_empty_file_holds_nothing() -> None:
    assert yaml.parse("# nothing\n", FILE).data == {}
