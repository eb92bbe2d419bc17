"""How the configs for TensorRT-LLM differ from upstream's templates of release 1.2.1, key by key, and why.

Templates read: ``triton_backend/all_models/inflight_batcher_llm/{preprocessing,tensorrt_llm,postprocessing,ensemble,
tensorrt_llm_bls}/config.pbtxt`` of NVIDIA/TensorRT-LLM. Their tensors are ``trtpipe.triton_repo.upstream``.
"""

# model -> the parameters of its template
PARAMETERS = {
    "preprocessing": (
        "tokenizer_dir add_special_tokens multimodal_model_path gpt_model_path max_num_images hf_model_path"
    ),
    "tensorrt_llm": """
        max_beam_width FORCE_CPU_ONLY_INPUT_TENSORS gpt_model_type gpt_model_path encoder_model_path
        max_tokens_in_paged_kv_cache max_attention_window_size sink_token_length batch_scheduler_policy
        kv_cache_free_gpu_mem_fraction cross_kv_cache_fraction kv_cache_host_memory_bytes kv_cache_onboard_blocks
        enable_trt_overlap exclude_input_in_output cancellation_check_period_ms stats_check_period_ms
        iter_stats_max_iterations request_stats_max_iterations enable_kv_cache_reuse normalize_log_probs
        enable_chunked_context gpu_device_ids participant_ids num_nodes lora_cache_optimal_adapter_size
        lora_cache_max_adapter_size lora_cache_gpu_memory_fraction lora_cache_host_memory_bytes lora_prefetch_dir
        decoding_mode executor_worker_path lookahead_window_size lookahead_ngram_size lookahead_verification_set_size
        medusa_choices eagle_choices gpu_weights_percent enable_context_fmha_fp32_acc multi_block_mode cuda_graph_mode
        cuda_graph_cache_size speculative_decoding_fast_logits tokenizer_dir guided_decoding_backend
        xgrammar_tokenizer_info_path""",
    "postprocessing": "tokenizer_dir skip_special_tokens",
    "ensemble": "",
    "tensorrt_llm_bls": (
        "accumulate_tokens tensorrt_llm_model_name tensorrt_llm_draft_model_name multimodal_encoders_name"
    ),
}
# models whose template has a dynamic_batching block
BATCHING = ("preprocessing", "tensorrt_llm", "postprocessing")

MULTIMODAL = "pictures and videos are not served"
ENCODER_DECODER = "encoder-decoder models are not served"
BIAS = "words are not made likelier by the preprocessing; clients of the engine can give embedding_bias"
DRAFT = "no draft model stands beside the engine"
OWN_MODEL = "the model's code is this project's own, and is told of tensors and steps by its own table"
ONE_PROMPT = "a request holds one prompt; batches are made in flight, by the engine"
PASSED = "the BLS model passes on what both kinds of engine serve; the ensemble passes on all"
TABLE = "prompt tables are for the ensemble without extra ids, and for clients of the engine"

# (model, kind of key) -> the keys that the template has and ours has not, by reason
MISSING = {
    ("preprocessing", "input"): {
        MULTIMODAL: "IMAGE_BYTES IMAGE_URL IMAGES VIDEO_BYTES",
        ENCODER_DECODER: "DECODER_QUERY",
        BIAS: "EMBEDDING_BIAS_WORDS EMBEDDING_BIAS_WEIGHTS",
        TABLE: "PROMPT_TABLE_EXTRA_ID",
    },
    ("preprocessing", "output"): {
        MULTIMODAL: """PIXEL_VALUES ASPECT_RATIO_IDS ASPECT_RATIO_MASK CROSS_ATTENTION_MASK IMAGE_SIZES IS_VIDEO_INPUT
            ATTENTION_MASK IMAGE_GRID_THW VISION_INPUT_ID""",
        ENCODER_DECODER: "DECODER_INPUT_ID REQUEST_DECODER_INPUT_LEN",
        BIAS: "EMBEDDING_BIAS",
        TABLE: "OUT_PROMPT_TABLE_EXTRA_IDS",
    },
    ("preprocessing", "parameter"): {
        MULTIMODAL: "multimodal_model_path max_num_images hf_model_path gpt_model_path",
        "the tokenizer's own files say which special tokens a prompt begins with": "add_special_tokens",
    },
    ("preprocessing", "block"): {ONE_PROMPT: "dynamic_batching"},
    ("postprocessing", "parameter"): {"special tokens are never shown": "skip_special_tokens"},
    ("postprocessing", "block"): {"answers must leave in the order in which they came": "dynamic_batching"},
    ("ensemble", "input"): {
        ENCODER_DECODER: "decoder_text_input",
        BIAS: "embedding_bias_words embedding_bias_weights",
        TABLE: "prompt_table_extra_id",
    },
    ("tensorrt_llm_bls", "input"): {
        MULTIMODAL: "image_input image_bytes_input image_url_input video_bytes_input",
        ENCODER_DECODER: "decoder_text_input",
        BIAS: "embedding_bias_words embedding_bias_weights",
        DRAFT: "num_draft_tokens use_draft_logits",
        TABLE: "prompt_table_extra_id",
        PASSED: """length_penalty return_context_logits return_generation_logits return_perf_metrics
            num_return_sequences exclude_input_in_output
            prompt_embedding_table prompt_vocab_size lora_task_id lora_weights lora_config guided_decoding_guide_type
            guided_decoding_guide""",
    },
    ("tensorrt_llm_bls", "output"): {
        PASSED: """context_logits generation_logits batch_index sequence_index
            kv_cache_alloc_new_blocks kv_cache_reused_blocks kv_cache_alloc_total_blocks arrival_time_ns
            first_scheduled_time_ns first_token_time_ns last_token_time_ns acceptance_rate total_accepted_draft_tokens
            total_draft_tokens""",
    },
    ("tensorrt_llm_bls", "parameter"): {
        "tokens wait for the end of their character, without decoding all of them again": "accumulate_tokens",
        OWN_MODEL: "tensorrt_llm_model_name multimodal_encoders_name",
        DRAFT: "tensorrt_llm_draft_model_name",
    },
}
# The same for keys that ours has and the template has not.
ADDED = {
    ("preprocessing", "parameter"): {"the day that the chat template sees": "template_date"},
    ("tensorrt_llm_bls", "output"): {"else nobody could tell which tokens log probabilities are of": "log_prob_ids"},
    ("tensorrt_llm_bls", "parameter"): {"it cuts answers and finds stop words itself": "tokenizer_dir"},
}
