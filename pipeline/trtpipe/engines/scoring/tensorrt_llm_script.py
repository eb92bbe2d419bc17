"""Score rows with a TensorRT-LLM engine as it is served: each row's own tokens are forced, one after the other.

Runs as `mpirun -n RANKS python tensorrt_llm_script.py JOB OUT` with the Python of TensorRT-LLM 1.2.1, on its executor
in leader mode. The engine answers a row's prompt, and a logits post-processor reads each step's logits, then leaves
only the row's next token possible. So the engine of the release is scored itself, through steps that read its KV cache
in the type it is served with. Context logits give neither: they want another engine (`gather_context_logits` is a
choice of the build, and takes KV reuse away), and come from a pass over the whole text, which without paged context
FMHA never reads the quantized cache.

Upstream, NVIDIA/TensorRT-LLM: the callback's arguments and that it changes logits [1, beams, vocabulary] in place are
in tensorrt_llm/sampling_params.py (BatchedLogitsProcessor) and examples/bindings/executor/example_logits_processor.py;
that without `replicate` the first tensor-parallel rank alone runs it, in cpp/tensorrt_llm/batch_manager/
logitsPostProcessor.cpp; that its tokens are then broadcast, in trtGptModelInflightBatching.h (broadcastPostDecoder);
the executor's names, in cpp/tensorrt_llm/nanobind/executor/{executor,executorConfig,request}.cpp. The worker of
upstream's own LLM API (tensorrt_llm/executor/worker.py) runs engines with the same two settings.

The job: engine, vocabulary, kv_memory_share, chunked_context, and tasks of {rows (JSONL), baseline (npz or null),
output}. Outputs and figures.json go into the folder OUT, where rows may lie too.
"""

from __future__ import annotations

import datetime
import json
import resource
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import markers
import positions
import torch
from positions import Part, Row
from tensorrt_llm.bindings import executor as trtllm

POLL = datetime.timedelta(seconds=1)


class Forcing:
    """The logits post-processor: keeps the scores of each row's positions and forces its tokens.

    It is called by the executor's thread in the one rank that decides on tokens, and must not raise there: ``fault`` is
    what went wrong first.
    """

    def __init__(self, rows: list[Row], wanted: list[torch.Tensor | None], vocabulary: int) -> None:
        self.rows = rows
        self.wanted = wanted
        self.vocabulary = vocabulary
        self.parts: list[list[Part]] = [[] for _ in rows]
        self.fault: str | None = None

    def __call__(
        self,
        request_ids: list[int],
        logits: list[torch.Tensor],
        token_ids: list[list[list[int]]],
        stream: int,
        client_ids: list[int],
    ) -> None:
        try:
            on_stream = torch.cuda.stream(torch.cuda.ExternalStream(stream)) if logits[0].is_cuda else nullcontext()
            with on_stream:
                for values, beams, index in zip(logits, token_ids, client_ids, strict=True):
                    self._take(values, beams[0], index)
        except Exception as fault:
            self.fault = self.fault or f"{type(fault).__name__}: {fault}"

    def _take(self, logits: torch.Tensor, ids: list[int], index: int) -> None:
        row, parts = self.rows[index], self.parts[index]
        place = row.score_from + len(parts)
        if place >= len(row.ids) or len(ids) != place or ids[-1] != row.ids[place - 1]:
            expected = f"row {row.id} was to be at position {place}, after token {row.ids[place - 1]}"
            raise ValueError(f"{expected}; the engine has {len(ids)} tokens, the last {ids[-1]}")
        # Columns beyond the vocabulary are padding, which is never sampled from.
        real = logits.reshape(-1, logits.shape[-1])[:1, : self.vocabulary]
        observed = torch.tensor([row.ids[place]], device=logits.device)
        wanted = self.wanted[index]
        top_ids = None if wanted is None else wanted[len(parts)].unsqueeze(0).to(logits.device)
        parts.append(positions.of(real, observed, top_ids))
        logits.fill_(float("-inf"))
        logits[..., row.ids[place]] = 0.0
        if len(parts) == row.tokens:  # the KV cache leaves little of the GPU's memory
            self.parts[index] = [Part(*(column.cpu() for column in part)) for part in parts]

    def whole(self) -> bool:
        """Whether this rank was called at all. Ends the script where it was not called for every position."""
        called = any(self.parts)
        lacking = [row.id for row, parts in zip(self.rows, self.parts, strict=True) if len(parts) != row.tokens]
        if self.fault:
            markers.refuse(f"the engine did not take a row's tokens: {self.fault}")
        if called and lacking:
            markers.refuse(f"the engine left positions out in {len(lacking)} rows, first {lacking[0]}")
        return called


def main(job: dict[str, Any], out: Path) -> None:
    tasks = job["tasks"]
    rows_of = [positions.rows_of(out / task["rows"]) for task in tasks]
    rows, wanted = [row for rows in rows_of for row in rows], []
    for task, own in zip(tasks, rows_of, strict=True):
        wanted += positions.wanted_of(Path(task["baseline"]) if task["baseline"] else None, own)
    forcing = Forcing(rows, wanted, job["vocabulary"])
    started = time.monotonic()
    with trtllm.Executor(Path(job["engine"]), trtllm.ModelType.DECODER_ONLY, config_of(job, forcing)) as executor:
        loaded = time.monotonic()
        leads = executor.can_enqueue_requests()
        if leads:
            run(executor, rows)
        # the others wait here until the leader is done
    if forcing.whole():
        first = 0
        for task, own in zip(tasks, rows_of, strict=True):
            parts = forcing.parts[first : first + len(own)]
            positions.save(out / task["output"], own, [part for of_row in parts for part in of_row])
            first += len(own)
    if leads:
        figures = {
            "runs_with": "TensorRT-LLM's executor, each token forced in a step of its own",
            "rows": [len(own) for own in rows_of], "tokens": [sum(row.tokens for row in own) for own in rows_of],
            "load_seconds": round(loaded - started, 2), "seconds": round(time.monotonic() - loaded, 2),
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        }  # fmt: skip
        (out / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


def config_of(job: dict[str, Any], forcing: Forcing) -> Any:
    """Return how the engine runs: as served, but for KV reuse, so that no row depends on those before it."""
    return trtllm.ExecutorConfig(
        max_beam_width=1,
        kv_cache_config=trtllm.KvCacheConfig(enable_block_reuse=False, free_gpu_memory_fraction=job["kv_memory_share"]),
        enable_chunked_context=job["chunked_context"],
        parallel_config=trtllm.ParallelConfig(trtllm.CommunicationType.MPI, trtllm.CommunicationMode.LEADER),
        logits_post_processor_config=trtllm.LogitsPostProcessorConfig(processor_batched=forcing, replicate=False),
    )


def run(executor: Any, rows: list[Row]) -> None:
    """Ask for every row, which are batched in flight, and wait for all. Ends the script where one fails."""
    requests = [
        trtllm.Request(
            input_token_ids=list(row.ids[: row.score_from]),
            max_tokens=row.tokens,
            sampling_config=trtllm.SamplingConfig(beam_width=1, top_k=1),
            client_id=index,
            logits_post_processor_name=trtllm.Request.BATCHED_POST_PROCESSOR_NAME,
        )  # without end_id: a row goes on behind the token that ends an answer
        for index, row in enumerate(rows)
    ]
    waiting = dict(zip(executor.enqueue_requests(requests), rows, strict=True))
    while waiting:
        for response in executor.await_responses(POLL):
            if response.has_error():
                markers.refuse(f"the engine refused row {waiting[response.request_id].id}: {response.error_msg}")
            if response.result.is_final:
                del waiting[response.request_id]
                markers.tell(markers.PROGRESS, f"{len(rows) - len(waiting)} {len(rows)}")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))
