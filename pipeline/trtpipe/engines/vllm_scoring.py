"""Teacher-forced scoring with the local engine, as a call: starts the worker and waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.core.process import run_worker
from trtpipe.engines.vllm_arguments import for_scoring

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.progress import Reporter


@dataclass(frozen=True)
class ScoringTask:
    """A file of rows to score, and where the scores go."""

    rows: Path
    output: Path
    baseline: Path | None = None


def score(
    model: Path,
    arguments: dict[str, Any],
    environment: dict[str, str],
    tasks: list[ScoringTask],
    *,
    log: Path,
    reporter: Reporter,
    time_limit_s: float,
) -> dict[str, Any]:
    """Score all tasks with one start of the engine and return the worker's figures.

    ``arguments`` are the engine's own, or those of ``vllm_arguments.for_baseline``. Raises ConfigError for
    rows that can't be scored, Stale for a baseline of other rows, ToolFailed where the engine fails.
    """
    job = {
        "model": str(model),
        "arguments": for_scoring(arguments),
        "tasks": [
            {
                "rows": str(task.rows),
                "output": str(task.output),
                "baseline": str(task.baseline) if task.baseline else None,
            }
            for task in tasks
        ],
    }
    return run_worker(
        "trtpipe.engines.vllm_score",
        job,
        log=log,
        reporter=reporter,
        time_limit_s=time_limit_s,
        environment=environment,
    )
