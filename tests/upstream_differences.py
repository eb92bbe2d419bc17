"""How the configs for TensorRT-LLM differ from upstream's templates of release 1.2.1, key by key, and why.

The templates are ``upstream_templates.toml``. What is left out of the engine's parameters, and why, is a table of the
package itself: ``engine_parameters.LEFT_OUT``.
"""

MULTIMODAL = "pictures and videos are not served"
ENCODER_DECODER = "encoder-decoder models are not served"
BIAS = "words are not made likelier by the preprocessing; clients of the engine can give embedding_bias"
DRAFT = "no draft model stands beside the engine"
OWN_MODEL = "the model's code is this project's own, and is told of tensors and steps by its own table"
ONE_PROMPT = "a request holds one prompt; batches are made in flight, by the engine"
ORDER = "answers must leave in the order in which they came"
PASSED = "the BLS model passes on what both kinds of engine serve; the ensemble passes on all"
TABLE = "prompt tables are for the ensemble without extra ids, and for clients of the engine"
BEAMS = "other than one beam is refused before the engine fails on it"

# model -> the keys that the template has and ours has not, by reason
MISSING = {
    "preprocessing": {
        MULTIMODAL: """input.IMAGE_BYTES input.IMAGE_URL input.IMAGES input.VIDEO_BYTES
            output.PIXEL_VALUES output.ASPECT_RATIO_IDS output.ASPECT_RATIO_MASK output.CROSS_ATTENTION_MASK
            output.IMAGE_SIZES output.IS_VIDEO_INPUT output.ATTENTION_MASK output.IMAGE_GRID_THW output.VISION_INPUT_ID
            parameters.multimodal_model_path parameters.max_num_images parameters.hf_model_path
            parameters.gpt_model_path""",
        ENCODER_DECODER: "input.DECODER_QUERY output.DECODER_INPUT_ID output.REQUEST_DECODER_INPUT_LEN",
        BIAS: "input.EMBEDDING_BIAS_WORDS input.EMBEDDING_BIAS_WEIGHTS output.EMBEDDING_BIAS",
        TABLE: "input.PROMPT_TABLE_EXTRA_ID output.OUT_PROMPT_TABLE_EXTRA_IDS",
        "the tokenizer's own files say which special tokens a prompt begins with": "parameters.add_special_tokens",
        ONE_PROMPT: """dynamic_batching.preferred_batch_size dynamic_batching.max_queue_delay_microseconds
            dynamic_batching.default_queue_policy.max_queue_size""",
    },
    "tensorrt_llm": {"0, which is what the field is without": "dynamic_batching.max_queue_delay_microseconds"},
    "postprocessing": {
        "special tokens are never shown": "parameters.skip_special_tokens",
        ORDER: "dynamic_batching",
    },
    "ensemble": {
        ENCODER_DECODER: """input.decoder_text_input
            ensemble_scheduling.step.preprocessing.input_map.DECODER_QUERY
            ensemble_scheduling.step.preprocessing.output_map.DECODER_INPUT_ID
            ensemble_scheduling.step.preprocessing.output_map.REQUEST_DECODER_INPUT_LEN
            ensemble_scheduling.step.tensorrt_llm.input_map.decoder_input_ids
            ensemble_scheduling.step.tensorrt_llm.input_map.decoder_input_lengths""",
        BIAS: """input.embedding_bias_words input.embedding_bias_weights
            ensemble_scheduling.step.preprocessing.input_map.EMBEDDING_BIAS_WORDS
            ensemble_scheduling.step.preprocessing.input_map.EMBEDDING_BIAS_WEIGHTS
            ensemble_scheduling.step.preprocessing.output_map.EMBEDDING_BIAS
            ensemble_scheduling.step.tensorrt_llm.input_map.embedding_bias""",
        TABLE: """input.prompt_table_extra_id
            ensemble_scheduling.step.preprocessing.input_map.PROMPT_TABLE_EXTRA_ID
            ensemble_scheduling.step.preprocessing.output_map.OUT_PROMPT_TABLE_EXTRA_IDS
            ensemble_scheduling.step.tensorrt_llm.input_map.prompt_table_extra_ids""",
    },
    "tensorrt_llm_bls": {
        MULTIMODAL: """input.image_input input.image_bytes_input input.image_url_input input.video_bytes_input
            parameters.multimodal_encoders_name""",
        ENCODER_DECODER: "input.decoder_text_input",
        BIAS: "input.embedding_bias_words input.embedding_bias_weights",
        DRAFT: "input.num_draft_tokens input.use_draft_logits parameters.tensorrt_llm_draft_model_name",
        TABLE: "input.prompt_table_extra_id",
        PASSED: """input.length_penalty input.return_context_logits input.return_generation_logits
            input.return_perf_metrics input.num_return_sequences input.exclude_input_in_output
            input.prompt_embedding_table input.prompt_vocab_size input.lora_task_id input.lora_weights input.lora_config
            input.guided_decoding_guide_type input.guided_decoding_guide
            output.context_logits output.generation_logits output.batch_index output.sequence_index
            output.kv_cache_alloc_new_blocks output.kv_cache_reused_blocks output.kv_cache_alloc_total_blocks
            output.arrival_time_ns output.first_scheduled_time_ns output.first_token_time_ns output.last_token_time_ns
            output.acceptance_rate output.total_accepted_draft_tokens output.total_draft_tokens""",
        "tokens wait for the end of their character, without decoding all of them again": (
            "parameters.accumulate_tokens"
        ),
        OWN_MODEL: "parameters.tensorrt_llm_model_name",
    },
}
# The same for keys that ours has and the template has not.
ADDED = {
    "preprocessing": {
        "the day that the chat template sees": "parameters.template_date",
        BEAMS: "input.BEAM_WIDTH",
    },
    "ensemble": {BEAMS: "ensemble_scheduling.step.preprocessing.input_map.BEAM_WIDTH"},
    "tensorrt_llm_bls": {
        "it cuts answers and finds stop words itself": "parameters.tokenizer_dir",
        "else nobody could tell which tokens log probabilities are of": "output.log_prob_ids",
    },
}
# Keys that both have, with another value than the template's own (which is no placeholder); none so far.
OTHERWISE: dict[str, dict[str, str]] = {}

# model -> the keys whose placeholder ours fills, by where the value comes from
FILLED = {
    "preprocessing": {
        ONE_PROMPT: "max_batch_size",
        "two, so that a long prompt does not delay a short one": "instance_group.0.count",
        "the release's own tokenizer, seen from the model's folder": "parameters.tokenizer_dir",
    },
    "tensorrt_llm": {
        "this is for the backend in C++": "backend",
        "the engine's max_batch_size": "max_batch_size dynamic_batching.preferred_batch_size",
        "the limit of the engine's queue, 0 for none": "dynamic_batching.default_queue_policy.max_queue_size",
        "answers are streamed": "model_transaction_policy.decoupled",
        "both engine and tokenizer are in the release": "parameters.gpt_model_path parameters.tokenizer_dir",
        "the type that logits have in engines of this project": """input.draft_logits output.context_logits
            output.generation_logits""",
        "pictures are not served; FP16 is what the templates' own documents fill in": """input.encoder_input_features
            input.prompt_embedding_table""",
        "what the engine was built for": "parameters.max_beam_width parameters.decoding_mode",
        "from the target": """parameters.kv_cache_free_gpu_mem_fraction parameters.enable_kv_cache_reuse
            parameters.enable_chunked_context""",
        "a request that runs is never put back": "parameters.batch_scheduler_policy",
        "no blocks are kept in the host's memory": "parameters.kv_cache_host_memory_bytes",
        "batches are made in flight": "parameters.gpt_model_type",
        "an answer begins behind its prompt, as the local engine's does": "parameters.exclude_input_in_output",
        "no guided decoding: the two keys must be there, and are empty": """parameters.guided_decoding_backend
            parameters.xgrammar_tokenizer_info_path""",
        "the backend's own default, written down so that a new release can't change it unseen": """
            parameters.kv_cache_onboard_blocks parameters.normalize_log_probs parameters.num_nodes
            parameters.cancellation_check_period_ms parameters.stats_check_period_ms
            parameters.iter_stats_max_iterations parameters.request_stats_max_iterations
            parameters.lora_cache_optimal_adapter_size parameters.lora_cache_max_adapter_size
            parameters.lora_cache_gpu_memory_fraction parameters.lora_cache_host_memory_bytes
            parameters.gpu_weights_percent parameters.enable_context_fmha_fp32_acc parameters.multi_block_mode
            parameters.cuda_graph_mode parameters.cuda_graph_cache_size
            parameters.speculative_decoding_fast_logits""",
    },
    "postprocessing": {
        ONE_PROMPT: "max_batch_size",
        ORDER: "instance_group.0.count",
        "the release's own tokenizer, seen from the model's folder": "parameters.tokenizer_dir",
    },
    "ensemble": {
        ONE_PROMPT: "max_batch_size",
        "the type that logits have in engines of this project": "output.context_logits output.generation_logits",
    },
    "tensorrt_llm_bls": {
        ONE_PROMPT: "max_batch_size",
        "one process serves any number of requests, each in a thread": "instance_group.0.count",
        "answers are streamed": "model_transaction_policy.decoupled",
    },
}
