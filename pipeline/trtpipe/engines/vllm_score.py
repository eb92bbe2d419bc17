"""Worker: teacher-forced scoring of rows with the local engine.

Job: model (folder), arguments (of ``vllm_arguments.for_scoring``), tasks: a list of {rows (JSONL), baseline
(npz or null), output (npz)}. Result: tasks (rows, tokens, seconds of each), kv_dtype, load_seconds,
peak_rss_mib.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm import LLM, SamplingParams

from trtpipe.core import scores
from trtpipe.core.worker import Events, serve
from trtpipe.engines import scored_rows
from trtpipe.engines.vllm_load import load
from trtpipe.engines.vllm_tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtpipe.core.scores import Scores
    from trtpipe.engines.scored_rows import ScoredRow


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    arguments = job["arguments"]
    inputs = [_read(task, arguments["max_model_len"]) for task in job["tasks"]]
    started = time.monotonic()
    llm = load(Path(job["model"]), arguments)
    load_seconds = round(time.monotonic() - started, 2)
    return {
        "tasks": [
            _finish(llm, task, rows, baseline, events)
            for task, (rows, baseline) in zip(job["tasks"], inputs, strict=True)
        ],
        "kv_dtype": llm.llm_engine.vllm_config.cache_config.cache_dtype,
        "load_seconds": load_seconds,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def _read(task: dict[str, Any], max_model_len: int) -> tuple[list[ScoredRow], Scores | None]:
    rows = scored_rows.read(Path(task["rows"]), max_model_len=max_model_len)
    if task["baseline"] is None:
        return rows, None
    baseline = scores.load(Path(task["baseline"]))
    scored_rows.require_same_rows(rows, baseline, Path(task["baseline"]))
    return rows, baseline


def _finish(
    llm: LLM, task: dict[str, Any], rows: list[ScoredRow], baseline: Scores | None, events: Events
) -> dict[str, Any]:
    started = time.monotonic()
    label = f"score {Path(task['rows']).stem}"
    found = score(llm, rows, baseline, lambda done: events.progress(label, done, len(rows)))
    found.save(Path(task["output"]))
    return {"rows": len(rows), "tokens": found.tokens, "seconds": round(time.monotonic() - started, 2)}


def score(llm: LLM, rows: list[ScoredRow], baseline: Scores | None, progress: Callable[[int], None]) -> Scores:
    """Run every row through the engine once, in order, and return its scores.

    The last token of a row is only predicted, never read. Raises ToolFailed where a row is left out.
    """
    tap = Tap(rows, baseline, progress)
    hook = llm.apply_model(tap.attach)[0]
    try:
        llm.generate(
            [{"prompt_token_ids": list(row.ids[:-1])} for row in rows],
            SamplingParams(temperature=0.0, max_tokens=1, detokenize=False),
            use_tqdm=False,
        )
    finally:
        hook.remove()
    return tap.scores()


if __name__ == "__main__":
    serve(work)
