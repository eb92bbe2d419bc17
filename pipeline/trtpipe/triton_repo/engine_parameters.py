"""The parameters of the engine model for TensorRT-LLM 1.2.1: every one that its C++ backend reads, with a value.

Source: ``tensorrt_llm/config.pbtxt`` and ``triton_backend/inflight_batcher_llm/src/model_instance_state.cc`` of
NVIDIA/TensorRT-LLM. The backend reads texts; one that it can't read as a number or a truth value counts as not given.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

# The key of the backend for each field that has another name there.
KEYS = {
    "engine_folder": "gpt_model_path",
    "tokenizer_folder": "tokenizer_dir",
    "beam_width_max": "max_beam_width",
    "kv_memory_share": "kv_cache_free_gpu_mem_fraction",
    "kv_reuse": "enable_kv_cache_reuse",
    "kv_host_bytes": "kv_cache_host_memory_bytes",
    "chunked_context": "enable_chunked_context",
    "scheduler_policy": "batch_scheduler_policy",
}
# The same for every engine: the backend's own defaults, written down so that a new release can't change them unseen.
FIXED = {
    "gpt_model_type": "inflight_fused_batching",
    "FORCE_CPU_ONLY_INPUT_TENSORS": "no",
    "executor_worker_path": "/opt/tritonserver/backends/tensorrtllm/trtllmExecutorWorker",
    "kv_cache_onboard_blocks": "true",
    "cancellation_check_period_ms": "100",
    "stats_check_period_ms": "100",
    "iter_stats_max_iterations": "1000",
    "request_stats_max_iterations": "0",
    "normalize_log_probs": "true",
    "num_nodes": "1",
    "lora_cache_optimal_adapter_size": "8",
    "lora_cache_max_adapter_size": "64",
    "lora_cache_gpu_memory_fraction": "0.05",
    "lora_cache_host_memory_bytes": "1073741824",
    "gpu_weights_percent": "1.0",
    "enable_context_fmha_fp32_acc": "false",
    "multi_block_mode": "true",
    "cuda_graph_mode": "false",
    "cuda_graph_cache_size": "0",
    "speculative_decoding_fast_logits": "false",
    # Not the default: an answer would begin with its prompt, which the local engine's does not.
    "exclude_input_in_output": "true",
    # Read outside of any try block: the model does not load where one of the two, or tokenizer_dir, is missing.
    "guided_decoding_backend": "",
    "xgrammar_tokenizer_info_path": "",
}
# The values that the backend can read, for the keys that are no free text. Another one counts as not given.
TRUTHS = [
    "kv_cache_onboard_blocks",
    "exclude_input_in_output",
    "normalize_log_probs",
    "enable_kv_cache_reuse",
    "enable_chunked_context",
    "enable_context_fmha_fp32_acc",
    "enable_trt_overlap",
    "multi_block_mode",
    "cuda_graph_mode",
    "speculative_decoding_fast_logits",
]
# Whole numbers, with the least that the executor takes (kvCacheConfig.cpp, executorConfig.cpp). The backend reads a
# text as far as it is a number: 1.5 and 1e3 would both become 1.
WHOLE_NUMBERS = {
    "max_beam_width": 1,
    "max_tokens_in_paged_kv_cache": 1,
    "max_attention_window_size": 1,
    "sink_token_length": 1,
    "kv_cache_host_memory_bytes": 0,
    "cancellation_check_period_ms": 0,
    "stats_check_period_ms": 0,
    "recv_poll_period_ms": 0,
    "iter_stats_max_iterations": 0,
    "request_stats_max_iterations": 0,
    "num_nodes": 1,
    "lora_cache_optimal_adapter_size": 0,
    "lora_cache_max_adapter_size": 0,
    "lora_cache_host_memory_bytes": 0,
    "cuda_graph_cache_size": 0,
    "lookahead_window_size": 1,
    "lookahead_ngram_size": 1,
    "lookahead_verification_set_size": 1,
}
BYTES = ("kv_cache_host_memory_bytes", "lora_cache_host_memory_bytes")  # numbers of 64 bits; the others have 32
LISTS = ("max_attention_window_size",)  # one number, or one for each layer with commas between them
# Shares of a whole, and whether 0 and 1 are among them.
SHARES = {
    "kv_cache_free_gpu_mem_fraction": False,
    "cross_kv_cache_fraction": False,
    "lora_cache_gpu_memory_fraction": True,
    "gpu_weights_percent": True,
}
CHOICES = {
    "gpt_model_type": ("inflight_fused_batching", "inflight_batching", "V1", "v1"),
    "batch_scheduler_policy": ("guaranteed_no_evict", "max_utilization"),
    "decoding_mode": ("top_k", "top_p", "top_k_top_p", "beam_search", "medusa", "redrafter", "lookahead", "eagle"),
    "guided_decoding_backend": ("", "xgrammar"),
}
# What a model makes of a placeholder that was left as the value of a parameter.
Left = Literal["unset", "unset if its own", "value"]
# The backend in C++ counts a number, a truth value or a choice that it can't read as not given; and of free texts:
LEFT: dict[str, Left] = {
    **dict.fromkeys([*TRUTHS, *WHOLE_NUMBERS, *SHARES, *CHOICES], "unset"),
    "gpt_model_type": "value",  # an unknown one keeps the model from loading
    "gpt_model_path": "value",
    "executor_worker_path": "value",
    "FORCE_CPU_ONLY_INPUT_TENSORS": "value",
    "encoder_model_path": "unset",  # a folder that is not there
    "lora_prefetch_dir": "unset",  # the same (peftCacheManager.cpp)
    "gpu_device_ids": "unset",
    "participant_ids": "unset",
    "medusa_choices": "unset",
    "eagle_choices": "unset",
    "secondary_offload_min_priority": "unset",
    "tokenizer_dir": "unset",
    "guided_decoding_backend": "unset if its own",
    "xgrammar_tokenizer_info_path": "unset if its own",
}
# With a choice, the model does not load where one of these is not given.
NEEDED_WITH = {
    ("decoding_mode", "lookahead"): (
        "lookahead_window_size",
        "lookahead_ngram_size",
        "lookahead_verification_set_size",
    ),
}
MANDATORY = ("gpt_model_type", "gpt_model_path")
MUST_EXIST = ("tokenizer_dir", "guided_decoding_backend", "xgrammar_tokenizer_info_path")
# Keys of the template that have no value for "none": leaving them out is how the backend is told so.
LEFT_OUT = {
    "encoder_model_path": "only for encoder-decoder models",
    "cross_kv_cache_fraction": "only for encoder-decoder models",
    "max_tokens_in_paged_kv_cache": "the KV cache is sized by its share of the memory",
    "max_attention_window_size": "the whole sequence",
    "sink_token_length": "no attention sinks",
    "enable_trt_overlap": "deprecated and without effect",
    "gpu_device_ids": "the GPUs that the launcher shows to each rank",
    "participant_ids": "only where ranks are spawned beforehand",
    "lora_prefetch_dir": "a text is taken for a folder, an empty one too",
    "lookahead_window_size": "only for lookahead decoding",
    "lookahead_ngram_size": "only for lookahead decoding",
    "lookahead_verification_set_size": "only for lookahead decoding",
    "medusa_choices": "only for Medusa",
    "eagle_choices": "only for EAGLE",
}


@dataclass(frozen=True)
class EngineParameters:
    """What differs between engines. Folders are absolute, or seen from the model's own folder.

    The backend in C++ opens ``engine_folder`` as it is (model_instance_state.cc), so a server is started in the model's
    folder; it ignores ``tokenizer_folder``.
    """

    engine_folder: str
    tokenizer_folder: str
    beam_width_max: int
    kv_memory_share: float
    kv_reuse: bool
    kv_host_bytes: int
    chunked_context: bool
    scheduler_policy: Literal["guaranteed_no_evict", "max_utilization"]

    def texts(self) -> dict[str, str]:
        """Return every parameter as the backend reads it."""
        own = {KEYS[field.name]: _text(getattr(self, field.name)) for field in fields(self)}
        mode = {"decoding_mode": "top_k_top_p" if self.beam_width_max == 1 else "beam_search"}
        return dict(sorted((FIXED | own | mode).items()))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
