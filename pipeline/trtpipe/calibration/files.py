"""Which files a log consists of, what each is written in, and its bytes, decompressed as they are read."""

from __future__ import annotations

import glob
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import zstandard

from trtpipe.calibration.zstd import ZstdStream
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

Container = Literal["jsonl", "csv", "parquet"]
SUFFIXES: dict[str, Container] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".log": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zstd")
PARQUET_MAGIC = b"PAR1"
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class LogFile:
    """``number``: its place in the log, from 1. ``compression``: empty where there is none."""

    path: Path
    number: int
    container: Container
    compression: str

    @property
    def described(self) -> str:
        return f"{self.path.name}: {self.container}{self.compression and f', {self.compression}'}"

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Give the decompressed bytes. Raises ConfigError where the compressed stream is damaged or ends early."""
        try:
            with self.path.open("rb") as raw:
                if self.compression == "gzip":
                    with gzip.GzipFile(fileobj=raw) as stream:
                        yield io.BufferedReader(stream)
                elif self.compression == "zstd":
                    yield io.BufferedReader(ZstdStream(raw))
                else:
                    yield raw
        except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as fault:
            raise ConfigError(
                f"the {self.compression} stream is damaged or ends early: {fault}",
                where=str(self.path),
                fix="compress the file again",
            ) from None


def find(patterns: list[Path], container: Container | None = None) -> list[LogFile]:
    """Return the log's files, sorted by path within each pattern: files, folders (all below) and globs.

    ``container``: what all files are written in; None means by name, else by content.
    Raises ConfigError, all faults at once.
    """
    problems: list[TrtpipeError] = []
    paths: dict[Path, None] = {}
    for pattern in patterns:
        try:
            paths |= dict.fromkeys(_expand(pattern))
        except ConfigError as problem:
            problems.append(problem)
    files = []
    for number, path in enumerate(paths, start=1):
        try:
            files.append(_classify(path, number, container))
        except OSError as fault:
            problems.append(
                ConfigError(
                    f"can't read the prompts: {fault.strerror or fault}", where=str(path), fix="check prompts.files"
                )
            )
        except ConfigError as problem:
            problems.append(problem)
    raise_all(problems)
    return files


def _expand(pattern: Path) -> list[Path]:
    if pattern.suffix == ".py":
        raise ConfigError(
            "a loading script is code: it is never run",
            where=str(pattern),
            fix="give the data itself as JSONL, CSV or Parquet",
        )
    if pattern.is_file():
        return [pattern]
    if pattern.is_dir():
        return _below(pattern)
    found = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True))  # noqa: PTH207 - absolute patterns
    files = [path for path in found if path.is_file()]
    if not files:
        raise ConfigError(
            "prompt file not found",
            where=str(pattern),
            fix="check prompts.files; data sets are never downloaded, so give a file, a folder or a glob",
        )
    return files


def _below(folder: Path) -> list[Path]:
    everything = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in everything if _data_suffix(path) in SUFFIXES]
    if files:
        return files
    scripts = [path.name for path in everything if path.suffix == ".py"]
    raise ConfigError(
        f"the data set wants its own code to be run ({scripts[0]}), which is never done"
        if scripts
        else "the folder holds no prompts",
        where=str(folder),
        fix=f"put files there that end in {', '.join(SUFFIXES)}, or one of these and {', '.join(COMPRESSED_SUFFIXES)}",
    )


def _data_suffix(path: Path) -> str:
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path
    return inner.suffix.lower()


def _classify(path: Path, number: int, container: Container | None) -> LogFile:
    with path.open("rb") as raw:
        head = raw.read(4)
    compression = next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), "")
    known = container or SUFFIXES.get(_data_suffix(path))
    if known is None:
        with LogFile(path, number, "jsonl", compression).opened() as stream:
            start = stream.read(4096).removeprefix(BOM).lstrip()
        known = "parquet" if start.startswith(PARQUET_MAGIC) else "jsonl" if start[:1] in (b"{", b"") else "csv"
    return LogFile(path, number, known, compression)
