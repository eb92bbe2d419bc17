"""The canonical layout itself, for vLLM elsewhere: a copy, byte for byte."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from trtpipe.core.artifacts import RECORD
from trtpipe.core.progress import Reporter
from trtpipe.quantization.exports.checkpoint import Checkpoint


@dataclass(frozen=True)
class CompressedExport:
    """A checkpoint as it is; ``notes``: nothing is changed."""

    checkpoint: Checkpoint
    notes: list[str]

    def write(self, folder: Path, reporter: Reporter) -> None:
        """Copy every file but the record, which the copy gets of its own."""
        files = [path for path in sorted(self.checkpoint.folder.iterdir()) if path.is_file() and path.name != RECORD]
        for done, path in enumerate(files, 1):
            shutil.copyfile(path, folder / path.name)
            reporter.progress("copy file", done, len(files))


def plan(checkpoint: Checkpoint) -> CompressedExport:
    """Settle the copy: the layout was checked when the checkpoint was opened."""
    return CompressedExport(checkpoint, [])
