"""Stand-ins for what the engine model imports of vLLM and of Triton's Python backend, and a record of what it does.

With them, the model's own part can be tested in milliseconds; the real ones are behind it in ``tests/e2e``.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FINAL = 1


class ClientError(Exception):
    """vLLM's word for a request that is at fault."""


@dataclass
class Record:
    """``metrics``: (name, label's value) -> its calls. ``sent``: responses as (error or tensors, code, final).

    ``logged``: faults; ``told``: the rest of the log.
    """

    metrics: dict[tuple[str, str], list[tuple[str, float]]] = field(default_factory=dict)
    metric_threads: set[int] = field(default_factory=set)
    logged: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    unloaded: list[str] = field(default_factory=list)
    asked: list[tuple[dict[str, Any], str]] = field(default_factory=list)

    def total(self, name: str, value: str = "") -> float:
        """Return a counter, or the number of a histogram's observations."""
        calls = self.metrics[name, value]
        return sum(number if what == "increment" else 1 for what, number in calls)

    def last(self, name: str, value: str = "") -> float:
        return self.metrics[name, value][-1][1]


class Sender:
    """What Triton gives to answer a request with."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, bool]] = []
        self.ended = threading.Event()
        self.gone = False

    def send(self, response: Any = None, flags: int = 0) -> None:
        self.sent.append((response, flags == FINAL))
        if flags == FINAL:
            self.ended.set()

    def is_cancelled(self) -> bool:
        return self.gone


class Engine:
    """AsyncLLM: answers with the ids in ``answers``, one a step; ``fault`` is raised after them.

    ``finish_reason``: of the last output. ``forgets_aborts``: a request whose outputs nobody takes any more stays.
    """

    answers: tuple[int, ...] = (5, 6, 7)
    fault: Exception | None = None
    finish_reason = "stop"
    endless = False
    forgets_aborts = False

    def __init__(self, record: Record, loggers: Any) -> None:
        self._record = record
        self.errored = False
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(max_model_len=64, get_vocab_size=lambda: 300),
            cache_config=SimpleNamespace(num_gpu_blocks=10, block_size=32),
            scheduler_config=SimpleNamespace(max_num_seqs=4),
        )
        self.logger = loggers[0](self.vllm_config, 0)
        self.logger.log_engine_initialized()

    async def generate(self, prompt: Any, sampling: dict[str, Any], request_id: str) -> AsyncIterator[Any]:
        self._record.asked.append((sampling, request_id))
        try:
            async for output in self._outputs(sampling):
                yield output
        finally:
            # The real one takes a step after an abort too, in which it lets go of the request.
            if not self.forgets_aborts:
                self.logger.record(_scheduler(idle=True), None)

    async def _outputs(self, sampling: dict[str, Any]) -> AsyncIterator[Any]:
        metrics = SimpleNamespace(queued_ts=1.0, scheduled_ts=1.5)
        for place, token in enumerate(self.answers):
            await asyncio.sleep(0)
            self.logger.record(_scheduler(), SimpleNamespace(
                num_prompt_tokens=3 if place == 0 else 0, num_generation_tokens=1, num_preempted_reqs=0))  # fmt: skip
            log_probs = [{token: SimpleNamespace(logprob=-0.5)}] if sampling["logprobs"] is not None else None
            finished = place + 1 == len(self.answers) and not self.fault and not self.endless
            reason = self.finish_reason if finished else None
            output = SimpleNamespace(token_ids=[token], logprobs=log_probs, finish_reason=reason)
            yield SimpleNamespace(outputs=[output], metrics=metrics, finished=finished)
        if self.fault:
            raise self.fault
        while self.endless:
            await asyncio.sleep(0.01)

    def shutdown(self) -> None:
        pass


def _scheduler(*, idle: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        num_running_reqs=0 if idle else 1,
        num_waiting_reqs=0 if idle else 2,
        num_skipped_waiting_reqs=0 if idle else 1,
        kv_cache_usage=0.0 if idle else 0.3,
        prefix_cache_stats=SimpleNamespace(queries=0 if idle else 40, hits=0 if idle else 32),
    )


def modules(record: Record) -> dict[str, Any]:
    """Return the modules by name, to be laid over ``sys.modules``."""

    class AsyncLLM:
        @staticmethod
        def from_engine_args(arguments: Any, stat_loggers: Any) -> Engine:
            return Engine(record, stat_loggers)

    return {
        "triton_python_backend_utils": _backend(record),
        "vllm": _module("vllm", AsyncEngineArgs=dict, SamplingParams=dict),
        "vllm.config": _module("vllm.config", StructuredOutputsConfig=dict),
        "vllm.exceptions": _module("vllm.exceptions", VLLMClientError=ClientError),
        "vllm.sampling_params": _module(
            "vllm.sampling_params", RequestOutputKind=SimpleNamespace(DELTA="delta"), StructuredOutputsParams=dict
        ),
        "vllm.v1": _module("vllm.v1"),
        "vllm.v1.engine": _module("vllm.v1.engine"),
        "vllm.v1.engine.async_llm": _module("vllm.v1.engine.async_llm", AsyncLLM=AsyncLLM),
        "vllm.v1.metrics": _module("vllm.v1.metrics"),
        "vllm.v1.metrics.loggers": _module("vllm.v1.metrics.loggers", StatLoggerBase=object),
    }


def _module(name: str, **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    return made


def _backend(record: Record) -> ModuleType:
    class Metric:
        def __init__(self, name: str, labels: dict[str, str], buckets: list[float] | None = None) -> None:
            (value,) = [text for label, text in labels.items() if label not in ("model", "version")] or [""]
            self._calls = record.metrics.setdefault((name, value), [])
            for call in ("set", "increment", "observe"):
                setattr(self, call, lambda number, call=call: self._called(call, number))

        def _called(self, call: str, number: float) -> None:
            self._calls.append((call, number))
            record.metric_threads.add(threading.get_ident())

    class MetricFamily:
        GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"

        def __init__(self, name: str, description: str, kind: str) -> None:
            self._name = name

        def Metric(self, **arguments: Any) -> Metric:  # noqa: N802 - Triton's name
            return Metric(self._name, **arguments)

    class TritonError:
        INVALID_ARG, UNAVAILABLE, INTERNAL, CANCELLED = "invalid", "unavailable", "internal", "cancelled"

        def __new__(cls, reason: str, code: str) -> Any:  # type: ignore[misc]
            return (code, reason)

    return _module(
        "triton_python_backend_utils",
        MetricFamily=MetricFamily,
        TritonError=TritonError,
        TritonModelException=RuntimeError,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL=FINAL,
        Logger=SimpleNamespace(log_error=record.logged.append, log_info=record.told.append),
        Tensor=SimpleNamespace(from_dlpack=lambda name, tensor: (name, tensor.tolist())),
        InferenceResponse=lambda tensors=None, error=None: error or dict(tensors),
        unload_model=record.unloaded.append,
    )
