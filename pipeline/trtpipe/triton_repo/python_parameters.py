"""The parameters that models in Python read, and what each makes of a placeholder that was left.

Source: ``MODEL/1/model.py`` below ``triton_backend/all_models/inflight_batcher_llm`` of NVIDIA/TensorRT-LLM, in the
stored versions nearest to 1.2.1: preprocessing 01259b15, postprocessing 2e2327b9, tensorrt_llm_bls 0ef1f21e,
tensorrt_llm 0d5352f5.
"""

from __future__ import annotations

from trtpipe.triton_repo import engine_parameters
from trtpipe.triton_repo.engine_parameters import Left

# A text that is one placeholder and nothing else: not given.
_UNSET: dict[str, Left] = dict.fromkeys(
    [
        *["batch_scheduler_policy", "cancellation_check_period_ms", "cross_kv_cache_fraction", "cuda_graph_cache_size"],
        *[
            "cuda_graph_mode",
            "decoding_mode",
            "eagle_choices",
            "enable_chunked_context",
            "enable_context_fmha_fp32_acc",
        ],
        *["enable_kv_cache_reuse", "enable_trt_overlap", "exclude_input_in_output", "executor_worker_path"],
        *["gpt_model_type", "gpu_device_ids", "guided_decoding_backend", "kv_cache_free_gpu_mem_fraction"],
        *["kv_cache_host_memory_bytes", "kv_cache_onboard_blocks", "lookahead_ngram_size"],
        *["lookahead_verification_set_size", "lookahead_window_size", "lora_cache_gpu_memory_fraction"],
        *["lora_cache_host_memory_bytes", "lora_cache_max_adapter_size", "lora_cache_optimal_adapter_size"],
        *["lora_prefetch_dir", "max_attention_window_size", "max_beam_width", "max_tokens_in_paged_kv_cache"],
        *["medusa_choices", "multi_block_mode", "normalize_log_probs", "sink_token_length", "stats_check_period_ms"],
        *["tokenizer_dir"],
    ],
    "unset",
)
READ: dict[str, dict[str, Left]] = {
    "preprocessing": {
        "tokenizer_dir": "value",
        "add_special_tokens": "unset",
        "multimodal_model_path": "unset if its own",
        "max_num_images": "unset",
        # Only looked at for models that see pictures.
        "gpt_model_path": "unset",
        "hf_model_path": "unset",
    },
    "tensorrt_llm": {"gpt_model_path": "value", **_UNSET},
    "postprocessing": {"tokenizer_dir": "value", "skip_special_tokens": "unset"},
    "ensemble": {},
    "tensorrt_llm_bls": {
        "accumulate_tokens": "unset",
        "tensorrt_llm_model_name": "unset",
        "tensorrt_llm_draft_model_name": "unset",
        "multimodal_encoders_name": "unset",
    },
}
# The same for the models of this project's releases, where they read more.
READ_BY_OURS: dict[str, dict[str, Left]] = {
    "preprocessing": {"template_date": "value", "golden_prompts": "value"},
    "tensorrt_llm": {"queue_requests_max": "value"},
    "tensorrt_llm_bls": {"tokenizer_dir": "value"},
}
# A key without which upstream's model does not load; it may be empty.
MUST_EXIST = {"preprocessing": "multimodal_model_path"}
# Read by Triton's Python backend itself.
READ_BY_TRITON: dict[str, Left] = {"EXECUTION_ENV_PATH": "value", "FORCE_CPU_ONLY_INPUT_TENSORS": "value"}
# The engine takes one more.
CHOICES = engine_parameters.CHOICES | {"decoding_mode": ("auto", *engine_parameters.CHOICES["decoding_mode"])}
# Of another text, each model makes a default of its own, without an error.
WORDS = {
    "add_special_tokens": "true false 1 0 t f y n yes no",
    "skip_special_tokens": "true false 1 0 t f y n yes no",
    "accumulate_tokens": "true false 1 0 t f yes no",
}
WHOLE_NUMBERS = {"max_num_images": 0}
