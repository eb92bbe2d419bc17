"""An artifact: a finished folder with a ``record.json`` that says what it is and how it came to be."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trtpipe.core import digest, documents
from trtpipe.errors import ConfigError, Stale

if TYPE_CHECKING:
    from pathlib import Path

RECORD = "record.json"
SCHEMA_VERSION: Literal[1] = 1

Kind = Literal["model", "prompt-set", "checkpoint", "engine", "release", "scores", "verdict"]

FOLDERS: dict[Kind, str] = {
    "model": "calibration/models",
    "prompt-set": "calibration/sets",
    "checkpoint": "calibration/checkpoints",
    "scores": "calibration/scores",
    "engine": "engines/built",
    "release": "triton_repo/releases",
    "verdict": "triton_repo/verdicts",
}


class KeyParts(BaseModel):
    """Everything that decides an artifact's content; its SHA-256 is the stage key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str = Field(description="Name of the stage that makes the artifact.")
    revision: int = Field(description="Raised whenever the stage's code changes its output.")
    inputs: dict[str, str] = Field(description="Digest of each input, by role.")
    parameters: dict[str, Any] = Field(description="The stage's own parameters.")
    versions: dict[str, str] = Field(description="Versions of the tools that change the output.")

    @property
    def key(self) -> str:
        return digest.of_value(self.model_dump())


class Output(BaseModel):
    """One file of an artifact."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    size_bytes: int


class Record(BaseModel):
    """The content of ``record.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Kind
    key: str
    parts: KeyParts
    digest: str = Field(description="SHA-256 over the outputs: the identity that later stages refer to.")
    outputs: dict[str, Output]
    figures: dict[str, Any] = Field(description="Key figures of the stage, units in the names.")
    notes: list[str] = Field(description="What the stage chose, changed, rounded or dropped, in words.")
    seconds: float
    created: str = Field(description="UTC, ISO 8601.")
    environment: dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """A finished artifact on disk."""

    path: Path
    record: Record

    @property
    def digest(self) -> str:
        return self.record.digest

    @property
    def id(self) -> str:
        return self.path.name


def outputs_of(folder: Path) -> dict[str, Output]:
    """List the files of a finished folder, the record itself left out."""
    return {
        name: Output(sha256=sha256, size_bytes=(folder / name).stat().st_size)
        for name, sha256 in digest.of_folder(folder).items()
        if name != RECORD
    }


def outputs_digest(outputs: dict[str, Output]) -> str:
    return digest.of_value({name: output.sha256 for name, output in outputs.items()})


def write_record(folder: Path, record: Record) -> None:
    """Write ``record.json`` in one step, so that a folder with a record is a whole one."""
    temporary = folder / f".{RECORD}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(record.model_dump(), file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / RECORD)


def read(path: Path) -> Artifact:
    """Read a finished artifact. Raises ConfigError where there is none or its record can't be read."""
    record_path = path / RECORD
    try:
        record = documents.read(record_path, Record, "record", "delete the artifact's folder and run again")
    except FileNotFoundError:
        raise ConfigError(
            "not a finished artifact: it has no record.json",
            where=str(path),
            fix="give the folder of a finished artifact, or run the stage again",
        ) from None
    return Artifact(path, record)


def differing_sizes(artifact: Artifact) -> list[str]:
    """Return the outputs that are missing or have another size than recorded: a cheap check."""

    def size(name: str) -> int | None:
        path = artifact.path / name
        return path.stat().st_size if path.is_file() else None

    return [name for name, output in artifact.record.outputs.items() if size(name) != output.size_bytes]


def verify(artifact: Artifact) -> None:
    """Compare every byte with the record. Raises Stale naming the files that differ."""
    present = outputs_of(artifact.path)
    recorded = artifact.record.outputs
    differing = sorted(name for name in recorded.keys() | present.keys() if recorded.get(name) != present.get(name))
    if differing:
        raise Stale(
            f"{len(differing)} file(s) differ from the record: {', '.join(differing[:5])}",
            where=str(artifact.path),
            fix="delete this folder and run again; a changed artifact is never used",
        )
