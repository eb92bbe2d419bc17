"""The metric families that Triton's tensorrtllm backend adds to its own, on the metrics port.

Source: triton_backend/inflight_batcher_llm/src/custom_metrics_reporter/custom_metrics_reporter.cc (InitializeReporter)
of NVIDIA/TensorRT-LLM, stored text of the 1.x line; the values come from executorStatsToJson in utils.cc beside it.
Every series has the labels `model` and `version` too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One family; its series differ in ``label``, which has one of ``values``."""

    name: str
    label: str
    values: tuple[str, ...]

    def selector(self, value: str) -> dict[str, str]:
        """Return the labels that pick one series. Raises ValueError for one that the backend does not have."""
        if value not in self.values:
            raise ValueError(f"{self.name} has no {self.label} {value}")
        return {self.label: value}


REQUESTS = Family(
    "nv_trt_llm_request_metrics", "request_type", ("active", "max", "scheduled", "context", "waiting")
)  # fmt: skip
KV_BLOCKS = Family(
    "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type",
    ("max", "free", "used", "tokens_per", "reused", "fraction"),
)  # fmt: skip
