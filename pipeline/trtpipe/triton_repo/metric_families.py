"""The metrics of a served release, as data: those of the local engine, of TensorRT-LLM 1.2.1 and of Triton itself.

Source of ``TENSORRT_LLM``: ``triton_backend/inflight_batcher_llm/src/custom_metrics_reporter/`` and, for when they are
set, ``model_instance_state.cc`` of NVIDIA/TensorRT-LLM. What the local engine knows has upstream's name where there is
one; the other names begin with ``trtpipe_``.

A copy of this module runs inside the engine model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True)
class Family:
    """Metrics that share a name: one for each of ``values`` in ``label``, or a single one where there is no label.

    All have ``model`` and ``version`` too. ``buckets``: upper ends, of histograms only.
    """

    name: str
    kind: Kind
    meaning: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    buckets: tuple[float, ...] = ()


# Upper ends in tokens, upstream's.
LENGTHS = (10.0, 50.0, 100.0, 500.0, 1000.0)
# In seconds: from one step of a small model to the longest wait that anybody accepts.
WAITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# In seconds a token: 200 tokens a second to one.
STEPS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)

REQUESTS = Family(
    "nv_trt_llm_request_metrics",
    "gauge",
    "Requests taken (active), in the running batch (scheduled), in the engine's queue (waiting), most at once (max)",
    "request_type",
    ("active", "max", "scheduled", "context", "waiting"),
)
BLOCKS = Family(
    "nv_trt_llm_kv_cache_block_metrics",
    "gauge",
    "KV cache blocks; reused: found in the cache since the engine was loaded",
    "kv_cache_block_type",
    ("max", "free", "used", "tokens_per", "reused", "fraction"),
)
GENERAL = Family(
    "nv_trt_llm_general_metrics",
    "gauge",
    "Steps since the engine was loaded, and the time of the last one (microseconds since 1970)",
    "general_type",
    ("timestamp", "iteration_counter"),
)
PROMPT_LENGTHS = Family(
    "nv_llm_input_token_len",
    "histogram",
    "Prompt tokens of a request, when it ends",
    "response_metric_type",
    ("total_input_tokens",),
    LENGTHS,
)
ANSWER_LENGTHS = Family(
    "nv_llm_output_token_len",
    "histogram",
    "Generated tokens of a request, when it ends",
    "response_metric_type",
    ("total_output_tokens",),
    LENGTHS,
)

TENSORRT_LLM = (
    *(REQUESTS, BLOCKS, GENERAL, PROMPT_LENGTHS, ANSWER_LENGTHS),
    Family(
        "nv_trt_llm_runtime_memory_metrics",
        "gauge",
        "Bytes of memory in use",
        "memory_type",
        ("cpu", "gpu", "pinned"),
    ),
    Family(
        "nv_trt_llm_disaggregated_serving_metrics",
        "counter",
        "Transfers of KV caches between engines",
        "disaggregated_serving_type",
        ("kv_cache_transfer_ms", "request_count"),
    ),
    Family(
        "nv_trt_llm_inflight_batcher_metrics",
        "gauge",
        "The last step",
        "inflight_batcher_specific_metric",
        ("total_context_tokens", "generation_requests", "micro_batch_id", "paused_requests"),
    ),
)

# vLLM does not tell which of the running requests are still at their prompt.
LOCAL_REQUESTS = replace(REQUESTS, values=("active", "max", "scheduled", "waiting"))
TOKENS = Family(
    "trtpipe_tokens",
    "counter",
    "Tokens by step: of prompts that have been read to their end, found in the cache or not, and generated ones",
    "phase",
    ("prompt", "answer"),
)
PREFIX = Family(
    "trtpipe_prefix_cache_tokens",
    "counter",
    "Prompt tokens looked up in the cache, and found there",
    "result",
    ("queried", "hit"),
)
PREEMPTIONS = Family(
    "trtpipe_preemptions", "counter", "Requests that lost their KV blocks to others and are computed anew"
)
OUTCOMES = Family(
    "trtpipe_request_outcomes",
    "counter",
    "How requests ended",
    "outcome",
    ("answered", "refused", "cancelled", "failed"),
)
QUEUE_S = Family(
    "trtpipe_queue_seconds", "histogram", "Time that a request has waited for a place in the batch", buckets=WAITS
)
FIRST_TOKEN_S = Family(
    "trtpipe_time_to_first_token_seconds",
    "histogram",
    "Time from a request's arrival at the engine model to its first token",
    buckets=WAITS,
)
TOKEN_S = Family(
    "trtpipe_time_per_output_token_seconds",
    "histogram",
    "Mean time between the tokens of a request, when it ends",
    buckets=STEPS,
)

LOCAL = (
    *(LOCAL_REQUESTS, BLOCKS, GENERAL, PROMPT_LENGTHS, ANSWER_LENGTHS),
    *(TOKENS, PREFIX, PREEMPTIONS, OUTCOMES, QUEUE_S, FIRST_TOKEN_S, TOKEN_S),
)

# Of those that Triton counts for every model, what the dashboard shows.
TRITON = (
    *("nv_inference_request_success", "nv_inference_request_failure"),
    *("nv_inference_request_duration_us", "nv_inference_queue_duration_us"),
)
