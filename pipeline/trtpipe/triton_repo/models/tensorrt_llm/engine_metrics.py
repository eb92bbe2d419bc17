"""The engine's figures as Triton metrics.

A call to Triton is a message to another process, which an engine step is too short for. So gauges and counters are
kept here, and ``publish`` sends what has changed.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import metric_families as families
import triton_python_backend_utils as pb_utils
from metric_families import Family
from vllm.v1.metrics.loggers import StatLoggerBase

# A family's name and the value of its label.
Key = tuple[str, str]


class EngineMetrics:
    """To be used by one thread only."""

    def __init__(self, model: str, version: str) -> None:
        self._labels = {"model": model, "version": version}
        self._families = {family.name: _made(family) for family in families.LOCAL}
        self._metrics = {
            (family.name, value): self._metric(family, value) for family in families.LOCAL for value in family.values
        }
        self._gauges: dict[Key, float] = {}
        self._published: dict[Key, float] = {}
        self._counts: Counter[Key] = Counter()
        self._steps = 0
        self._reused_tokens = 0

    def logger(self, vllm_config: Any, engine_index: int = 0) -> StatLoggerBase:
        """Build what vLLM reports its figures to after each engine step."""
        return _StepLogger(vllm_config, engine_index, self)

    def publish(self) -> None:
        """Send what has changed since the last time."""
        for key, number in self._gauges.items():
            if self._published.get(key) != number:
                self._metrics[key].set(number)
        self._published |= self._gauges
        for key, count in (+self._counts).items():
            self._metrics[key].increment(count)
        self._counts.clear()

    def engine_loaded(self, *, blocks: int, block_tokens: int, requests_max: int) -> None:
        self._block_count = blocks
        self._block_tokens = block_tokens
        self._set(families.BLOCKS, max=blocks, tokens_per=block_tokens, reused=0)
        self._set(families.LOCAL_REQUESTS, max=requests_max)
        self._stands(running=0, waiting=0, kv_fraction=0.0)
        self.publish()

    def step(self, *, running: int, waiting: int, kv_fraction: float, queried: int, hit: int) -> None:
        """Take how things stand after a step, and the prompt tokens looked up in the prefix cache during it."""
        self._steps += 1
        self._reused_tokens += hit
        self._stands(running=running, waiting=waiting, kv_fraction=kv_fraction)
        # What is found in the cache are whole blocks.
        self._set(families.BLOCKS, reused=self._reused_tokens // self._block_tokens)
        self._set(families.GENERAL, iteration_counter=self._steps, timestamp=time.time_ns() // 1000)
        self._add(families.PREFIX, queried=queried, hit=hit)

    def computed(self, *, prompt_tokens: int, answer_tokens: int, preemptions: int) -> None:
        self._add(families.TOKENS, prompt=prompt_tokens, answer=answer_tokens)
        self._counts[families.PREEMPTIONS.name, ""] += preemptions

    def active(self, count: int) -> None:
        self._set(families.LOCAL_REQUESTS, active=count)
        self.publish()

    def begun(self, *, first_token_s: float, queue_s: float) -> None:
        """Count a request that has got its first token."""
        self._metrics[families.FIRST_TOKEN_S.name, ""].observe(first_token_s)
        self._metrics[families.QUEUE_S.name, ""].observe(queue_s)

    def written(self, *, prompt_tokens: int, answer_tokens: int, token_s: float | None) -> None:
        """Count a request that has begun and now ends; ``token_s``: None where no token came after the first."""
        for family, length in ((families.PROMPT_LENGTHS, prompt_tokens), (families.ANSWER_LENGTHS, answer_tokens)):
            self._metrics[family.name, family.values[0]].observe(length)
        if token_s is not None:
            self._metrics[families.TOKEN_S.name, ""].observe(token_s)

    def ended(self, outcome: str) -> None:
        self._add(families.OUTCOMES, **{outcome: 1})
        self.publish()

    def close(self) -> None:
        """Let go of Triton's objects: the metrics before their families."""
        self._metrics.clear()
        self._families.clear()

    def _stands(self, *, running: int, waiting: int, kv_fraction: float) -> None:
        used = round(kv_fraction * self._block_count)
        self._set(families.LOCAL_REQUESTS, scheduled=running, waiting=waiting)
        self._set(families.BLOCKS, used=used, free=self._block_count - used, fraction=kv_fraction)

    def _set(self, family: Family, **numbers: float) -> None:
        self._gauges |= {(family.name, value): number for value, number in numbers.items()}

    def _add(self, family: Family, **counts: int) -> None:
        self._counts.update({(family.name, value): count for value, count in counts.items()})

    def _metric(self, family: Family, value: str) -> Any:
        labels = {**self._labels, **({family.label: value} if family.label else {})}
        # Triton wants no buckets, also not an empty list, for any other kind.
        buckets = {"buckets": list(family.buckets)} if family.buckets else {}
        return self._families[family.name].Metric(labels=labels, **buckets)


def _made(family: Family) -> Any:
    kind = getattr(pb_utils.MetricFamily, family.kind.upper())
    return pb_utils.MetricFamily(name=family.name, description=family.meaning, kind=kind)


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
        if iteration_stats is not None:
            self._metrics.computed(
                prompt_tokens=iteration_stats.num_prompt_tokens,
                answer_tokens=iteration_stats.num_generation_tokens,
                preemptions=iteration_stats.num_preempted_reqs,
            )

    def log_engine_initialized(self) -> None:
        cache = self._config.cache_config
        self._metrics.engine_loaded(
            blocks=cache.num_gpu_blocks,
            block_tokens=cache.block_size,
            requests_max=self._config.scheduler_config.max_num_seqs,
        )
