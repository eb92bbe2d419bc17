"""SHA-256 identities: of values in canonical JSON, of files, of folders."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SHOWN_DIGITS = 16


def canonical_json(value: Any) -> str:
    """Return ``value`` as JSON with sorted keys and no spaces; NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def of_value(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_folder(folder: Path) -> dict[str, str]:
    """Map each file below ``folder`` (POSIX path relative to it, sorted) to its digest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): of_file(path) for path in files}
