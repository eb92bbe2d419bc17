"""A model folder is usable or all that is wrong is told; its identity follows its bytes."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from trtpipe.core import digest, model_folder
from trtpipe.errors import ConfigError, Problems

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "tokenizer.json").write_text("{}")
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return path


def test_a_usable_folder_gives_its_config(folder: Path) -> None:
    assert model_folder.check(folder) == CONFIG


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", None, "there is no config.json"),
        ("config.json", b"[]", "not a JSON object"),
        ("config.json", b"{\n oops", "not valid JSON"),
        ("config.json", b"\xff{}", "not valid JSON"),
        ("config.json", b'{"architectures": ["BertModel"], "model_type": "bert"}', "not a causal .*BertModel"),
        ("config.json", b'{"architectures": null, "model_type": "llama"}', "none given"),
        ("config.json", b'{"architectures": "LlamaForCausalLM", "model_type": "llama"}', "no list"),
        ("config.json", b'{"architectures": ["LlamaForCausalLM"]}', "names no `model_type`"),
        (
            "config.json",
            b'{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": "8"}',
            "`hidden_size` must be a whole number above 0, and is '8'",
        ),
        ("config.json", b"[" * 100_000, "not valid JSON"),
        ("config.json", b'{"hidden_size": ' + b"1" * 5000 + b"}", "not valid JSON"),
        ("tokenizer.json", None, r"no tokenizer\.json"),
        ("model.safetensors", None, r"no \*\.safetensors"),
    ],
)
def test_one_thing_wrong(folder: Path, file: str, content: bytes | None, said: str) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        model_folder.check(folder)
    assert str(folder) in str(caught.value.where)


def test_all_problems_come_together_and_pickles_are_named(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "pytorch_model.bin").touch()
    with pytest.raises(Problems, match=r"(?s)no config.*pickle files \(pytorch_model\.bin\).*no tokenizer"):
        model_folder.check(folder)
    with pytest.raises(ConfigError, match="does not exist"):
        model_folder.check(folder / "no")


def test_the_identity_follows_the_bytes_even_under_an_old_time(folder: Path, tmp_path: Path) -> None:
    cache, weights = tmp_path / "cache.json", folder / "model.safetensors"
    before, status = model_folder.identity(folder, cache), weights.stat()
    time.sleep(0.02)  # the system's clock for files ticks every few milliseconds
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = model_folder.identity(folder, cache)
    assert after != before
    cache.write_text("{ half")
    assert model_folder.identity(folder, cache) == after
    (folder / "README.md").touch()
    assert model_folder.identity(folder, cache) == after


def test_an_unchanged_file_is_not_read_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_folder.identity(folder, tmp_path / "cache.json")
    monkeypatch.setattr(digest, "of_file", pytest.fail)
    assert model_folder.identity(folder, tmp_path / "cache.json") == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b'{"model": null}', b'{"model": {"vocab": {"a": "b"}}}', b"\xff", b"[" * 100_000],
)
def test_a_tokenizer_of_another_form_is_named(folder: Path, content: bytes) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="has not the form expected") as caught:
        model_folder.highest_token_id(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", [b"[1]", b"5", b"\xff", b"{"])
def test_a_damaged_cache_of_digests_is_none(folder: Path, tmp_path: Path, content: bytes) -> None:
    cache = tmp_path / "digests.json"
    expected = model_folder.identity(folder, cache)
    cache.write_bytes(content)
    assert model_folder.identity(folder, cache) == expected


def test_what_is_no_file_is_not_opened(folder: Path, tmp_path: Path) -> None:
    expected = model_folder.identity(folder, tmp_path / "digests.json")
    os.mkfifo(folder / "odd.json")
    assert model_folder.identity(folder, tmp_path / "digests.json") == expected
