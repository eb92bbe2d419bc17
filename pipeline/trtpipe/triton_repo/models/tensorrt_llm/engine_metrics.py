"""The engine's figures as Triton metrics, under TensorRT-LLM's family names where it has such a figure."""

from __future__ import annotations

from typing import Any

import triton_python_backend_utils as pb_utils
from vllm.v1.metrics.loggers import StatLoggerBase

OUTCOMES = ("answered", "refused", "cancelled", "failed")


class EngineMetrics:
    """To be used by one thread only."""

    def __init__(self, model: str, version: str) -> None:
        self._labels = {"model": model, "version": version}
        gauge, counter = pb_utils.MetricFamily.GAUGE, pb_utils.MetricFamily.COUNTER
        self._families = {
            "requests": self._family("nv_trt_llm_request_metrics", "Requests in the engine", gauge),
            "blocks": self._family("nv_trt_llm_kv_cache_block_metrics", "KV cache blocks", gauge),
            "prefix": self._family("trtpipe_prefix_cache_tokens", "Prompt tokens looked up and found", counter),
            "outcomes": self._family("trtpipe_request_outcomes", "How requests ended", counter),
        }
        self._requests = self._metrics("requests", "request_type", ("active", "max", "scheduled", "waiting"))
        self._blocks = self._metrics("blocks", "kv_cache_block_type", ("max", "free", "used", "tokens_per", "fraction"))
        self._prefix = self._metrics("prefix", "result", ("queried", "hit"))
        self._outcomes = self._metrics("outcomes", "outcome", OUTCOMES)

    def logger(self, vllm_config: Any, engine_index: int = 0) -> StatLoggerBase:
        """Build what vLLM reports its figures to after each engine step."""
        return _StepLogger(vllm_config, engine_index, self)

    def engine_loaded(self, *, blocks: int, block_tokens: int, requests_max: int) -> None:
        self._block_count = blocks
        self._blocks["max"].set(blocks)
        self._blocks["tokens_per"].set(block_tokens)
        self._requests["max"].set(requests_max)

    def step(self, *, running: int, waiting: int, kv_fraction: float, queried: int, hit: int) -> None:
        used = round(kv_fraction * self._block_count)
        self._requests["scheduled"].set(running)
        self._requests["waiting"].set(waiting)
        self._blocks["used"].set(used)
        self._blocks["free"].set(self._block_count - used)
        self._blocks["fraction"].set(kv_fraction)
        self._prefix["queried"].increment(queried)
        self._prefix["hit"].increment(hit)

    def active(self, count: int) -> None:
        self._requests["active"].set(count)
        if count == 0:
            # vLLM reports per step, and after a cancellation there may be none.
            self.step(running=0, waiting=0, kv_fraction=0.0, queried=0, hit=0)

    def ended(self, outcome: str) -> None:
        self._outcomes[outcome].increment(1)

    def close(self) -> None:
        """Let go of Triton's objects."""
        for metrics in (self._requests, self._blocks, self._prefix, self._outcomes, self._families):
            metrics.clear()

    @staticmethod
    def _family(name: str, description: str, kind: Any) -> Any:
        return pb_utils.MetricFamily(name=name, description=description, kind=kind)

    def _metrics(self, family: str, label: str, values: tuple[str, ...]) -> dict[str, Any]:
        return {value: self._families[family].Metric(labels={**self._labels, label: value}) for value in values}


class _StepLogger(StatLoggerBase):  # type: ignore[misc]
    def __init__(self, vllm_config: Any, engine_index: int, metrics: EngineMetrics) -> None:
        self._config = vllm_config
        self._metrics = metrics

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
    ) -> None:
        if scheduler_stats is not None:
            self._metrics.step(
                running=scheduler_stats.num_running_reqs,
                waiting=scheduler_stats.num_waiting_reqs + scheduler_stats.num_skipped_waiting_reqs,
                kv_fraction=scheduler_stats.kv_cache_usage,
                queried=scheduler_stats.prefix_cache_stats.queries,
                hit=scheduler_stats.prefix_cache_stats.hits,
            )

    def log_engine_initialized(self) -> None:
        cache = self._config.cache_config
        self._metrics.engine_loaded(
            blocks=cache.num_gpu_blocks,
            block_tokens=cache.block_size,
            requests_max=self._config.scheduler_config.max_num_seqs,
        )
