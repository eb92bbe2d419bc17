"""Several processes that share the calibration prompts: started as torchrun starts them, one GPU each where there are.

Each rank runs its own prompts through each layer; statistics are summed, one all-reduce for each distinct input. Then
every rank takes the same steps from the same sums, and the first one writes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from trtpipe.core.worker import REFUSALS, Events, die_with_parent
from trtpipe.errors import TrtpipeError, from_document, raise_all, system_fault

POLL_S = 0.5

Work = Callable[[dict[str, Any], Any], dict[str, Any]]


def run(work: Work, job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Run ``work`` in ``job["processes"]`` ranks and return the first one's result. Raises what a rank raised."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=job["processes"],
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        max_restarts=0,
    )
    ended = threading.Event()
    watching = threading.Thread(target=_pass_on_progress, args=(Path(job["folder"]), events, ended), daemon=True)
    watching.start()
    try:
        results = elastic_launch(config, _rank)(work, job)
    finally:
        ended.set()
        watching.join()
    errors = {json.dumps(document): document for result in results.values() for document in result.get("errors", ())}
    raise_all([from_document(document) for document in errors.values()])
    for note in results[0].pop("notes"):
        events.note(note)
    result: dict[str, Any] = results[0]
    return result


class _Notes:
    """What a rank says; its progress shows in the folder."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)

    def progress(self, label: str, done: int, total: int) -> None: ...


def _rank(work: Work, job: dict[str, Any]) -> dict[str, Any]:
    die_with_parent()
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(distributed.get_rank() % torch.cuda.device_count())
    notes = _Notes()
    try:
        return {**work(job, notes), "notes": notes.texts}
    except TrtpipeError as error:
        return {"errors": [one.document() for one in error.each()]}
    except OSError as fault:
        if fault.errno not in REFUSALS:
            raise
        return {"errors": [system_fault(fault).document()]}
    finally:
        distributed.destroy_process_group()


def _pass_on_progress(folder: Path, events: Events, ended: threading.Event) -> None:
    """Report the layers whose work the first rank has kept."""
    seen = -1
    while not ended.wait(POLL_S):
        done = len(list(folder.glob(".progress/layer-*.json")))
        if done > seen:
            events.send("progress", label="quantize layer", done=done, total=max(done, 1))
            seen = done


def share(rows: list[list[int]]) -> list[list[int]]:
    """Return this rank's rows: every n-th of them in the order of their length, so that all have as much to do."""
    rank, count = place()
    return sorted(rows, key=len)[rank::count] if count > 1 else rows


def place() -> tuple[int, int]:
    """Return this process's rank and how many ranks there are."""
    return (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)


def agree_on_least(number: int) -> int:
    """Return the least of all ranks' numbers."""
    return round(-_over_ranks([-number], distributed.ReduceOp.MAX)[0])


def agree_on_largest(values: list[float]) -> list[float]:
    """Return each value's largest over all ranks."""
    return _over_ranks(values, distributed.ReduceOp.MAX)


def add_up(count: int) -> int:
    """Return the sum of all ranks' counts."""
    return round(_over_ranks([count], distributed.ReduceOp.SUM)[0])


def _over_ranks(values: list[float], operation: Any) -> list[float]:
    if not distributed.is_initialized():
        return values
    where = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    shared = torch.tensor(values, dtype=torch.float64, device=where)
    distributed.all_reduce(shared, operation)
    reduced: list[float] = shared.tolist()
    return reduced
