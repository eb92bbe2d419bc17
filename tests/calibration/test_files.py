"""Which files are read, what they are found to be written in, and what is never run or fetched."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from calibration.read_logs import read
from calibration.tiny import write_log
from trtpipe.calibration import files
from trtpipe.errors import ConfigError

ROWS = [{"prompt": f"question {number}", "segment": "s"} for number in range(30)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
CSV = b"prompt,segment\n" + b"".join(b"question %d,s\n" % number for number in range(30))
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def parquet(folder: Path) -> bytes:
    path = folder / "made.parquet"
    pl.DataFrame(ROWS).write_parquet(path)
    content = path.read_bytes()
    path.unlink()
    return content


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("container", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_every_container_in_every_compression(tmp_path: Path, container: str, compression: str, *, named: bool) -> None:
    content = {"jsonl": LINES, "csv": CSV, "parquet": parquet(tmp_path)}[container]
    name = f"log.{container}{compression}" if named else "log"
    path = write_log(tmp_path, COMPRESSIONS[compression](content), name)
    (file,) = files.find([path])
    assert (file.container, bool(file.compression)) == (container, bool(compression))
    assert file.described.startswith(f"{name}: {container}")
    found = read(path)
    assert [(row.messages[0].content, row.segment) for row in found.rows] == [(row["prompt"], "s") for row in ROWS]


def test_folders_and_globs_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "a/1.csv", "b/notes.txt"):
        write_log(tmp_path, CSV if name.endswith("csv") else LINES, name)
    by_folder = [file.path.name for file in files.find([tmp_path])]
    assert by_folder == ["1.csv", "2.jsonl"]
    found = files.find([tmp_path / "**/*.jsonl", tmp_path / "b/2.jsonl", tmp_path / "a"])
    assert [(file.path.name, file.number) for file in found] == [("2.jsonl", 1), ("1.csv", 2)]


def test_what_is_stated_is_not_guessed(tmp_path: Path) -> None:
    (file,) = files.find([write_log(tmp_path, LINES, "log.csv")], "jsonl")
    assert file.container == "jsonl"


def test_all_missing_files_are_named_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        files.find([tmp_path / "a.jsonl", tmp_path / "*.csv"])
    assert [one.what for one in caught.value.each()] == ["prompt file not found"] * 2
    assert "never downloaded" in str(caught.value)


def test_o13_a_data_set_with_a_loading_script_is_refused_at_once(tmp_path: Path) -> None:
    script = write_log(tmp_path, b"raise SystemExit('run')", "set/load.py")
    with pytest.raises(ConfigError, match="a loading script is code: it is never run"):
        files.find([script])
    with pytest.raises(ConfigError, match=r"wants its own code to be run \(load.py\)") as caught:
        files.find([script.parent])
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_compressed_file_that_ends_early_is_named(tmp_path: Path, compression: str) -> None:
    content = COMPRESSIONS[compression](LINES * 50)
    path = write_log(tmp_path, content[: len(content) // 2], f"log.jsonl{compression}")
    with pytest.raises(ConfigError, match="ends early") as caught:
        read(path)
    assert caught.value.where == str(path)


def test_frames_of_zstd_one_after_the_other(tmp_path: Path) -> None:
    compress = COMPRESSIONS[".zst"]
    path = write_log(tmp_path, compress(LINES) + compress(b"") + compress(LINES), "log.jsonl.zst")
    assert len(read(path).rows) == 60


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = write_log(tmp_path, parquet(tmp_path)[:-20], "log.parquet")
    with pytest.raises(ConfigError, match="not a Parquet file that can be read") as caught:
        read(path)
    assert caught.value.where == str(path)
