"""Run a scoring script with the Python of TensorRT-LLM, on the host or in its container, and take its scores."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.core import reproduction, scores
from trtpipe.core.process import tail
from trtpipe.core.tool import run_tool
from trtpipe.engines.scoring import markers
from trtpipe.engines.trtllm.build import container, probe
from trtpipe.engines.trtllm.launch.line import MPIRUN
from trtpipe.errors import ConfigError, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtpipe.core.progress import Reporter
    from trtpipe.core.runner import Making
    from trtpipe.engines.trtllm.build.probe import Installation

HERE = Path(__file__).parent
BASELINE, ENGINE = "huggingface_script.py", "tensorrt_llm_script.py"
FIGURES = "figures.json"
# Ranks share one pipe: what one tells can stand behind an unfinished line of another, or before the next's.
TOLD = re.compile(rf"({markers.PROGRESS}|{markers.NOTE}|{markers.REFUSAL}) ")
COUNTED = re.compile(r"(\d+) (\d+)", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where scripts run, and how long they may take."""

    installation: Installation
    time_limit_s: float


def score(
    script: str, job: dict[str, Any], place: Place, making: Making, *, read: Sequence[Path], ranks: int | None
) -> dict[str, Any]:
    """Run a script that writes into the stage's folder, and return its figures.

    ``read``: the folders that the job names; ``ranks``: of the engine, None for a script that is one process. Raises
    ToolFailed in the script's own words where it refuses, with the log's end where it fails or takes too long.
    """
    run = making.log.parent
    (run / reproduction.JOB).write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")
    line = _line(script, run / reproduction.JOB, place.installation, making.folder, ranks)
    label, engine = f"trtpipe-{run.name}", place.installation.engine
    if engine is not None and place.installation.image is not None:
        image = place.installation.image.reference
        line = container.wrapped(engine, image, line, read=[HERE, *read], written=[making.folder, run], label=label)
    reproduction.of_tool(run, line, making.folder)
    said = _Said(making.reporter, f"score with {script}")
    try:
        ending = run_tool(
            line, log=making.log, time_limit_s=place.time_limit_s, environment=os.environ, on_line=said.take
        )
    finally:
        if engine is not None:
            container.kill(engine, label)
    if ending is not None:
        what = said.refusal or f"{script} failed: {ending}\n{tail(making.log)}"
        raise ToolFailed(what, where=str(making.log), fix="see the log")
    making.notes += said.notes
    figures = making.folder / FIGURES
    found: dict[str, Any] = json.loads(figures.read_text("utf-8"))
    figures.unlink()
    return found


def require_scores(path: Path, making: Making) -> None:
    """Raise ToolFailed where a script has left no scores, or such as are no log-probabilities."""
    try:
        scores.load(path)
    except ConfigError as fault:
        raise ToolFailed(
            fault.what,
            where=str(making.log),
            fix="check the checkpoint: NaN in the logits comes from broken weights or scales",
        ) from None


def _line(script: str, job: Path, installation: Installation, out: Path, ranks: int | None) -> list[str]:
    """Return the words that run a script; without bytecode, since its folder belongs to another Python."""
    python = "python3" if installation.engine else probe.interpreter_of(Path(installation.program))
    words = [python, "-B", str(HERE / script), str(job), str(out)]
    return words if ranks is None else [MPIRUN, "--allow-run-as-root", "-n", str(ranks), *words]


class _Said:
    """What a script tells in its output, apart from what the libraries print."""

    def __init__(self, reporter: Reporter, label: str) -> None:
        self._reporter = reporter
        self._label = label
        self.notes: list[str] = []
        self.refusal: str | None = None

    def take(self, line: str) -> None:
        _, *told = TOLD.split(line)
        for kind, text in zip(told[::2], told[1::2], strict=True):
            self._take(kind, text.strip())

    def _take(self, kind: str, text: str) -> None:
        if kind == markers.PROGRESS:
            if counted := COUNTED.fullmatch(text):
                self._reporter.progress(self._label, int(counted[1]), int(counted[2]))
        elif kind == markers.NOTE:
            self.notes.append(text)
            self._reporter.note(text)
        else:
            self.refusal = self.refusal or text
