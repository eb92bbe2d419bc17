"""The calibration quality report of a checkpoint, with the verdict on the release that was made of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.core.store import write_json
from trtpipe.report import quality

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact, Kind
    from trtpipe.core.store import Store

# From a checkpoint to what was said of it, each made from the one before.
DESCENT: tuple[Kind, ...] = ("engine", "release", "verdict")


@dataclass(frozen=True)
class Written:
    """Where the report is; ``verdict``: the one it cites, None where the checkpoint has none yet."""

    page: Path
    document: Path
    verdict: Artifact | None


def write(store: Store, checkpoint: Artifact) -> Written:
    """Write quality.html and quality.json into the workspace's state folder."""
    verdict = latest_verdict(store, checkpoint)
    content: dict[str, Any] | None = None
    if verdict:
        content = json.loads((verdict.path / "verdict.json").read_text("utf-8"))
    report = quality.document(checkpoint.record, content)
    written = Written(store.state / "quality.html", store.state / "quality.json", verdict)
    write_json(written.document, report)
    written.page.write_text(quality.page(report), encoding="utf-8")
    return written


def latest_verdict(store: Store, checkpoint: Artifact) -> Artifact | None:
    """Return the newest verdict on a release whose engine was built from this checkpoint."""
    ancestors = [checkpoint]
    for kind in DESCENT:
        digests = {ancestor.digest for ancestor in ancestors}
        ancestors = [one for one in store.all(kind) if digests & set(one.record.parts.inputs.values())]
    return ancestors[-1] if ancestors else None
