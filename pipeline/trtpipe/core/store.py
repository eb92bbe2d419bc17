"""Where artifacts live: one folder per key, made beside its final place and renamed when whole."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from trtpipe.core import artifacts
from trtpipe.core.artifacts import FOLDERS, Artifact, Kind
from trtpipe.core.digest import SHOWN_DIGITS
from trtpipe.core.reproduction import PARTIAL_SUFFIX
from trtpipe.errors import LockBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STATE = ".trtpipe"


class Store:
    """The artifacts of one workspace (the folder of the config file)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / STATE

    def path(self, kind: Kind, key: str) -> Path:
        return self.root / FOLDERS[kind] / key[:SHOWN_DIGITS]

    def find(self, kind: Kind, key: str) -> Artifact | None:
        """Return the finished artifact with exactly this key, or None."""
        path = self.path(kind, key)
        if not (path / artifacts.RECORD).is_file():
            return None
        artifact = artifacts.read(path)
        return artifact if artifact.record.key == key else None

    def all(self, kind: Kind) -> list[Artifact]:
        """Return the finished artifacts of a kind, oldest first."""
        records = (self.root / FOLDERS[kind]).glob(f"*/{artifacts.RECORD}")
        found = [artifacts.read(path.parent) for path in records if not path.parent.name.endswith(PARTIAL_SUFFIX)]
        return sorted(found, key=lambda artifact: artifact.record.created)

    def partial(self, kind: Kind, key: str, *, keep: bool) -> Path:
        """Return the working folder for a key: a fresh one, or with ``keep`` what a killed run left."""
        path = self.path(kind, key)
        partial = path.with_name(path.name + PARTIAL_SUFFIX)
        if not keep:
            shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True, exist_ok=True)
        return partial

    def publish(self, kind: Kind, partial: Path, record: artifacts.Record) -> Artifact:
        """Write the record, then rename the working folder to its final place."""
        artifacts.write_record(partial, record)
        path = self.path(kind, record.key)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
        return Artifact(path, record)

    def notes(self, stage: str, key: str) -> Path:
        """Return the fresh folder for what a stage leaves beside its artifact: log, how to reproduce it."""
        folder = self.state / "runs" / f"{stage}-{key[:SHOWN_DIGITS]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def last(self, stage: str) -> dict[str, Any] | None:
        """Return the key parts of a stage's latest run in this workspace, to say what has changed since."""
        try:
            found = json.loads((self.state / "last" / f"{stage}.json").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def remember(self, stage: str, parts: dict[str, Any]) -> None:
        write_json(self.state / "last" / f"{stage}.json", parts)

    @contextmanager
    def lock(
        self, command: str, *, wait_s: float = 0.0, note: Callable[[str], None] = lambda text: None
    ) -> Iterator[None]:
        """Hold the workspace; ``note`` gets a text if that takes waiting.

        Raises LockBusy naming the holder when another process still has it after ``wait_s``.
        """
        self.state.mkdir(parents=True, exist_ok=True)
        holder = self.state / "lock.json"
        lock = FileLock(self.state / "lock")
        try:
            with suppress(Timeout):
                lock.acquire(timeout=0)
            if not lock.is_locked:
                if wait_s > 0:
                    note(f"waiting up to {wait_s:g} s for {_describe_holder(holder)}")
                lock.acquire(timeout=wait_s)
        except Timeout:
            raise LockBusy(
                f"another run is active: {_describe_holder(holder)}",
                where=str(self.state / "lock"),
                fix="wait for it to end (`--wait SECONDS` does that), or stop that process",
            ) from None
        try:
            write_json(holder, {"pid": os.getpid(), "since": now(), "command": command})
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()


def _describe_holder(holder: Path) -> str:
    try:
        note = json.loads(holder.read_text("utf-8"))
        return f"`{note['command']}`, process {note['pid']}, since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "holder unknown"


def now() -> str:
    """Return the time in UTC, ISO 8601; texts of equal length, so that they sort by time."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def write_json(path: Path, value: Any) -> None:
    """Replace a small JSON file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as fault:
        fault.filename = fault.filename or str(path)  # a full disk is found out only when a file is closed
        temporary.unlink(missing_ok=True)
        raise


def command_line() -> str:
    """Return the running command as a person would type it."""
    return " ".join(["trtpipe", *sys.argv[1:]])
