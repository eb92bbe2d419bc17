"""Identities depend on content and nothing else."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from trtpipe.core import digest

if TYPE_CHECKING:
    from pathlib import Path


def test_canonical_json() -> None:
    assert digest.canonical_json({"b": [1, 1.5, None], "a": "é"}) == '{"a":"é","b":[1,1.5,null]}'
    assert digest.of_value({"a": 1, "b": 2}) == digest.of_value({"b": 2, "a": 1})
    assert digest.of_value({"a": 1}) != digest.of_value({"a": "1"})
    assert digest.of_value("é") == hashlib.sha256('"é"'.encode()).hexdigest()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_json_lacks_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest.of_value({"a": value})


def test_a_folder_is_named_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"1")
    (tmp_path / "a").write_bytes(b"")
    assert digest.of_folder(tmp_path) == {
        "a": hashlib.sha256(b"").hexdigest(),
        "b/x": hashlib.sha256(b"1").hexdigest(),
    }
