"""Every tensor of the five models of ``inflight_batcher_llm`` in TensorRT-LLM 1.2.1, as its templates have them.

Source: ``triton_backend/all_models/inflight_batcher_llm/<model>/config.pbtxt`` of NVIDIA/TensorRT-LLM. Three types are
placeholders there; they stand here as what this project fills in (``LOGITS`` and the two of multimodal models).
"""

from __future__ import annotations

from trtpipe.triton_repo.contract import Model, Tensor, Type

LOGITS: Type = "FP32"
ENCODER_FEATURES: Type = "FP16"
PROMPT_TABLE: Type = "FP16"

SCALAR, LIST = (1,), (-1,)


def _rows(type_: Type, dims: tuple[int, ...], names: str, *, optional: bool = True, flat: bool = False,
          ragged: bool = False) -> tuple[Tensor, ...]:  # fmt: skip
    return tuple(Tensor(name, type_, dims, optional=optional, flat=flat, ragged=ragged) for name in names.split())


def _made(type_: Type, dims: tuple[int, ...], names: str) -> tuple[Tensor, ...]:
    """Return outputs: they have a name, a type and dims only."""
    return _rows(type_, dims, names, optional=False)


PREPROCESSING = Model(
    "preprocessing",
    inputs=(
        *_rows("STRING", SCALAR, "QUERY", optional=False),
        *_rows("INT32", SCALAR, "REQUEST_OUTPUT_LEN", optional=False),
        *_rows("STRING", SCALAR, "DECODER_QUERY IMAGE_URL"),
        *_rows("UINT8", (-1, -1, -1, -1), "IMAGE_BYTES VIDEO_BYTES"),
        *_rows("STRING", LIST, "IMAGES BAD_WORDS_DICT STOP_WORDS_DICT EMBEDDING_BIAS_WORDS"),
        *_rows("FP32", LIST, "EMBEDDING_BIAS_WEIGHTS"),
        *_rows("INT32", SCALAR, "END_ID PAD_ID"),
        *_rows("UINT64", SCALAR, "PROMPT_TABLE_EXTRA_ID"),
    ),
    outputs=(
        *_made("INT32", LIST, "INPUT_ID DECODER_INPUT_ID REQUEST_OUTPUT_LEN VISION_INPUT_ID"),
        *_made("INT32", SCALAR, "REQUEST_INPUT_LEN REQUEST_DECODER_INPUT_LEN OUT_END_ID OUT_PAD_ID"),
        *_made("INT32", (2, -1), "BAD_WORDS_IDS STOP_WORDS_IDS"),
        *_made("FP32", LIST, "EMBEDDING_BIAS"),
        *_made("UINT64", LIST, "OUT_PROMPT_TABLE_EXTRA_IDS"),
        *_made("FP16", (-1, -1, -1, -1), "PIXEL_VALUES"),
        *_made("INT64", LIST, "ASPECT_RATIO_IDS ATTENTION_MASK"),
        *_made("INT64", (-1, -1), "ASPECT_RATIO_MASK"),
        *_made("INT64", (-1, -1, -1), "CROSS_ATTENTION_MASK"),
        *_made("INT64", (-1, 2), "IMAGE_SIZES"),
        *_made("BOOL", SCALAR, "IS_VIDEO_INPUT"),
        *_made("INT64", (3,), "IMAGE_GRID_THW"),
    ),
)

_STATISTICS = (
    *_made("FP32", LIST, "cum_log_probs"),
    *_made("FP32", (-1, -1), "output_log_probs"),
    *_made(LOGITS, (-1, -1), "context_logits"),
    *_made(LOGITS, (-1, -1, -1), "generation_logits"),
    *_made("INT32", SCALAR, "batch_index sequence_index"),
    *_made("INT32", SCALAR, "kv_cache_alloc_new_blocks kv_cache_reused_blocks kv_cache_alloc_total_blocks"),
    *_made("INT64", SCALAR, "arrival_time_ns first_scheduled_time_ns first_token_time_ns last_token_time_ns"),
    *_made("FP32", SCALAR, "acceptance_rate"),
    *_made("INT32", SCALAR, "total_accepted_draft_tokens total_draft_tokens num_input_tokens num_output_tokens"),
)

ENGINE = Model(
    "tensorrt_llm",
    inputs=(
        *_rows("INT32", SCALAR, "input_lengths request_output_len", optional=False, flat=True),
        *_rows("INT32", LIST, "input_ids draft_input_ids decoder_input_ids", ragged=True),
        *_rows("INT32", SCALAR, "encoder_output_lengths decoder_input_lengths num_return_sequences", flat=True),
        *_rows("INT32", SCALAR, "end_id pad_id beam_width runtime_top_k runtime_top_p_reset_ids", flat=True),
        *_rows("INT32", SCALAR, "min_tokens prompt_vocab_size", flat=True),
        *_rows(ENCODER_FEATURES, (-1, -1), "encoder_input_features", ragged=True),
        *_rows(LOGITS, (-1, -1), "draft_logits", ragged=True),
        *_rows("INT32", (2, -1), "stop_words_list bad_words_list", ragged=True),
        *_rows("FP32", LIST, "embedding_bias", ragged=True),
        *_rows("FP32", SCALAR, "draft_acceptance_threshold temperature runtime_top_p runtime_top_p_min", flat=True),
        *_rows("FP32", SCALAR, "runtime_top_p_decay len_penalty repetition_penalty", flat=True),
        *_rows("FP32", SCALAR, "beam_search_diversity_rate presence_penalty frequency_penalty", flat=True),
        *_rows("UINT64", SCALAR, "seed lora_task_id", flat=True),
        *_rows("BOOL", SCALAR, "early_stopping return_log_probs return_context_logits", flat=True),
        *_rows("BOOL", SCALAR, "return_generation_logits return_perf_metrics return_num_input_tokens", flat=True),
        *_rows("BOOL", SCALAR, "return_num_output_tokens exclude_input_in_output stop streaming", flat=True),
        *_rows(PROMPT_TABLE, (-1, -1), "prompt_embedding_table", ragged=True),
        *_rows("UINT64", LIST, "prompt_table_extra_ids", ragged=True),
        *_rows("BOOL", (-1, -1), "cross_attention_mask", ragged=True),
        *_rows("FP32", LIST, "mrope_rotary_cos_sin"),
        *_rows("INT64", SCALAR, "mrope_position_deltas"),
        *_rows("FP16", (-1, -1), "lora_weights", ragged=True),
        *_rows("INT32", (-1, 3), "lora_config", ragged=True),
        *_rows("UINT8", LIST, "context_phase_params", ragged=True),
        *_rows("BOOL", SCALAR, "skip_cross_attn_blocks", ragged=True),
        *_rows("INT32", LIST, "retention_token_range_starts retention_token_range_ends", ragged=True),
        *_rows("INT32", LIST, "retention_token_range_priorities retention_token_range_durations_ms", ragged=True),
        *_rows("INT32", SCALAR, "retention_decode_priority retention_decode_duration_ms", ragged=True),
        *_rows("STRING", SCALAR, "guided_decoding_guide_type guided_decoding_guide", ragged=True),
        *_rows("INT32", SCALAR, "lookahead_window_size lookahead_ngram_size", ragged=True),
        *_rows("INT32", SCALAR, "lookahead_verification_set_size", ragged=True),
    ),
    outputs=(
        *_made("INT32", (-1, -1), "output_ids"),
        *_made("INT32", LIST, "sequence_length"),
        *_STATISTICS,
        *_made("UINT8", LIST, "context_phase_params"),
    ),
    decoupled=True,
)

POSTPROCESSING = Model(
    "postprocessing",
    inputs=(*_made("INT32", (-1, -1), "TOKENS_BATCH"), *_made("INT32", LIST, "SEQUENCE_LENGTH")),
    outputs=_made("STRING", LIST, "OUTPUT"),
)

_REQUEST = (
    *_rows("STRING", SCALAR, "text_input", optional=False),
    *_rows("INT32", SCALAR, "max_tokens", optional=False),
    *_rows("STRING", SCALAR, "decoder_text_input"),
    *_rows("STRING", LIST, "bad_words stop_words embedding_bias_words"),
    *_rows("FP32", LIST, "embedding_bias_weights"),
    *_rows("INT32", SCALAR, "end_id pad_id top_k min_tokens beam_width prompt_vocab_size"),
    *_rows("FP32", SCALAR, "top_p temperature length_penalty repetition_penalty presence_penalty frequency_penalty"),
    *_rows("UINT64", SCALAR, "seed prompt_table_extra_id"),
    *_rows("BOOL", SCALAR, "exclude_input_in_output stream"),
    *_rows(PROMPT_TABLE, (-1, -1), "prompt_embedding_table"),
    *_rows("FP16", (-1, -1), "lora_weights", ragged=True),
    *_rows("INT32", (-1, 3), "lora_config", ragged=True),
)
_RETURNED = (
    "return_log_probs return_context_logits return_generation_logits return_perf_metrics "
    "return_num_input_tokens return_num_output_tokens"
)
_ANSWER = (*_made("STRING", LIST, "text_output"), *_STATISTICS)

ENSEMBLE = Model(
    "ensemble",
    inputs=(
        *_REQUEST,
        *_rows("INT32", SCALAR, "num_return_sequences"),
        *_rows("BOOL", SCALAR, _RETURNED),
        *_rows("UINT64", SCALAR, "lora_task_id"),
        *_rows("STRING", SCALAR, "guided_decoding_guide_type guided_decoding_guide", ragged=True),
    ),
    outputs=_ANSWER,
)

BLS = Model(
    "tensorrt_llm_bls",
    inputs=(
        *_REQUEST,
        *_rows("INT32", SCALAR, "num_return_sequences", flat=True),
        *_rows("BOOL", SCALAR, f"{_RETURNED} use_draft_logits", flat=True),
        *_rows("UINT64", SCALAR, "lora_task_id", flat=True),
        *_rows("STRING", SCALAR, "guided_decoding_guide_type guided_decoding_guide image_url_input"),
        *_rows("FP16", (-1, 3, -1, -1), "image_input"),
        *_rows("UINT8", (-1, -1, -1, -1), "image_bytes_input video_bytes_input"),
        *_rows("INT32", SCALAR, "num_draft_tokens"),
    ),
    outputs=_ANSWER,
    decoupled=True,
)

MODELS = (PREPROCESSING, ENGINE, POSTPROCESSING, ENSEMBLE, BLS)

# The engine's inputs that an ensemble passes on as they are -> the name that its clients know them by. The others come
# from preprocessing, or are for clients of the engine alone.
PASSED_ON = {
    name: name
    for name in (
        *["return_context_logits", "return_generation_logits", "return_perf_metrics"],
        *["num_return_sequences", "exclude_input_in_output"],
        *["prompt_embedding_table", "prompt_vocab_size", "lora_task_id", "lora_weights", "lora_config"],
        *["guided_decoding_guide_type", "guided_decoding_guide"],
    )
} | {"len_penalty": "length_penalty"}
