"""Records are read strictly, and changed files are noticed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from core.stages import stage
from trtpipe.core import artifacts
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError, Stale

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    return Runner(Store(tmp_path), Silent()).obtain(stage())


def test_a_record_is_read_as_written(artifact: Artifact) -> None:
    assert artifacts.read(artifact.path) == artifact
    assert artifact.record.outputs["file"].size_bytes == len("content")
    assert artifact.record.parts.key == artifact.record.key
    assert artifact.id == artifact.record.key[:16]
    artifacts.verify(artifact)


@pytest.mark.parametrize("field", ["revision", "inputs", "parameters", "versions", "stage"])
def test_every_key_part_changes_the_key(artifact: Artifact, field: str) -> None:
    others = {"revision": 2, "inputs": {}, "parameters": {}, "versions": {}, "stage": "other"}
    parts = artifact.record.parts
    assert parts.model_copy(update={field: others[field]}).key != parts.key


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record | {"schema_version": 2}, "schema_version"),
        (lambda record: record | {"more": 1}, "more"),
        (lambda record: {k: v for k, v in record.items() if k != "outputs"}, "outputs"),
    ],
)
def test_a_foreign_record_is_refused(
    artifact: Artifact, change: Callable[[dict[str, Any]], dict[str, Any]], said: str
) -> None:
    path = artifact.path / "record.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ConfigError, match=f"the record is damaged: {said}"):
        artifacts.read(artifact.path)


def test_half_a_record_and_none_are_config_errors(artifact: Artifact) -> None:
    path = artifact.path / "record.json"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ConfigError, match="the record is damaged: all of it"):
        artifacts.read(artifact.path)
    path.unlink()
    with pytest.raises(ConfigError, match="not a finished artifact"):
        artifacts.read(artifact.path)


def test_a_changed_byte_an_added_and_a_missing_file_are_stale(artifact: Artifact) -> None:
    file = artifact.path / "file"
    file.write_text("Content")
    assert artifacts.differing_sizes(artifact) == []
    with pytest.raises(Stale, match="file"):
        artifacts.verify(artifact)
    file.unlink()
    (artifact.path / "more").touch()
    assert artifacts.differing_sizes(artifact) == ["file"]
    with pytest.raises(Stale, match=r"2 file\(s\).*file, more"):
        artifacts.verify(artifact)
