"""The ``current`` link and its history."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trtpipe.core import artifacts
from trtpipe.core.artifacts import FOLDERS, Artifact
from trtpipe.core.store import Store, now
from trtpipe.errors import ConfigError

HISTORY = "triton_repo/history.jsonl"
ENTRY = ("time", "action", "release", "digest", "verdict", "previous")


def link(store: Store) -> Path:
    return store.root / "triton_repo" / "current"


def current_id(store: Store) -> str | None:
    """Return the id that ``current`` points to, whether or not that release is still there."""
    path = link(store)
    return path.readlink().name if path.is_symlink() else None


def current(store: Store) -> Artifact | None:
    """Return the promoted release, None before the first promotion. Raises ConfigError where it is gone."""
    path = link(store)
    return artifacts.read(path.resolve()) if path.is_symlink() else None


def require_current(store: Store) -> Artifact:
    """Return the promoted release. Raises ConfigError when none is: no gate has said no to anything."""
    release = current(store)
    if release is None:
        raise ConfigError("no release is promoted yet", where=str(link(store)), fix="trtpipe run")
    return release


def history(store: Store) -> list[dict[str, Any]]:
    """Return every promotion and rollback, oldest first."""
    path = store.root / HISTORY
    if not path.is_file():
        return []
    entries = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            entry = json.loads(line)
            entries.append({name: entry[name] for name in ENTRY})
        except (ValueError, TypeError, LookupError):
            raise ConfigError(
                "the history is damaged: a line is no promotion or rollback",
                where=f"{path}:{number}",
                fix="remove that line",
            ) from None
    return entries


def switch(store: Store, release: Artifact, action: str, verdict: str) -> None:
    """Point ``current`` at a release in one rename, after writing down that it happens."""
    entry = {
        "time": now(),
        "action": action,
        "release": release.id,
        "digest": release.digest,
        "verdict": verdict,
        "previous": current_id(store),
    }
    _append(store.root / HISTORY, json.dumps(entry) + "\n")
    path = link(store)
    temporary = path.with_name(f".current.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(Path(FOLDERS["release"]).name + "/" + release.id)
    temporary.replace(path)


def _append(path: Path, line: str) -> None:
    """Add a whole line, or nothing: a full disk takes half of one."""
    with path.open("ab") as file:
        before_bytes = file.tell()
        try:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, before_bytes)
            raise
