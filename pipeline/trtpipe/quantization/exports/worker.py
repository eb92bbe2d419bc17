"""The exporting child process: a canonical checkpoint -> the same codes and scales in another layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from trtpipe.core.progress import Reporter
from trtpipe.core.worker import Events, serve
from trtpipe.quantization.exports import autoawq, compressed, trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint


class Export(Protocol):
    """An export that is settled and can be written."""

    @property
    def notes(self) -> list[str]: ...

    def write(self, folder: Path, reporter: Reporter) -> None: ...


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Export. The job: checkpoint, folder (None: only say what would be changed), layout, and the layout's options."""
    planned = _plan(Checkpoint(Path(job["checkpoint"])), job["layout"], job["options"])
    if job["folder"] is not None:
        planned.write(Path(job["folder"]), events)
    return {"notes": planned.notes}


def _plan(checkpoint: Checkpoint, layout: str, options: dict[str, Any]) -> Export:
    if layout == "tensorrt-llm":
        return trtllm.plan(checkpoint, **options)
    return autoawq.plan(checkpoint) if layout == "autoawq" else compressed.plan(checkpoint)


if __name__ == "__main__":
    serve(work)
