"""A workspace with releases and verdicts on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.stages import stage
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Making, Runner
from trtpipe.core.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact


class Releases:
    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.runner = Runner(self.store, Silent())

    def release(self, value: int) -> Artifact:
        def make(making: Making) -> None:
            (making.folder / "file").write_text(f"release {value}")
            (making.folder / "engine").mkdir()
            (making.folder / "engine/engine.json").write_text("{}")  # of the local kind, which runs anywhere

        return self.runner.obtain(stage(make, value, name="package", kind="release"))

    def verdict(self, release: Artifact, outcome: str) -> Artifact:
        def make(making: Making) -> None:
            (making.folder / "verdict.json").write_text(json.dumps({"verdict": outcome}))

        inputs = {"release": release.digest, "outcome": outcome}
        return self.runner.obtain(stage(make, name="check-drift", kind="verdict", inputs=inputs))

    def passing(self, value: int) -> Artifact:
        release = self.release(value)
        self.verdict(release, "pass")
        return release
