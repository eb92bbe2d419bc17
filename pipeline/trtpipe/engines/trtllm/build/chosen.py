"""Every argument of `trtllm-build` for a plan, with the reason; and why those that are left out are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.capability import FP8_WORKFLOW

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.build.grammar import Value
    from trtpipe.engines.trtllm.plan import Plan

# Filled in when the command runs: where things lie, and what does not change the engine.
PLACES = ("checkpoint_dir", "output_dir", "input_timing_cache", "output_timing_cache", "workers")
# The same in every engine of this program. Where it is not upstream's default, a comment says why.
FIXED: dict[str, Value] = {
    "max_beam_width": 1,
    "max_encoder_input_len": 1024,
    "max_prompt_embedding_table_size": 0,
    "kv_cache_type": "paged",
    "profiling_verbosity": "layer_names_only",
    "log_level": "info",
    "logits_dtype": "float32",
    "bert_attention_plugin": "auto",
    "gpt_attention_plugin": "auto",
    "gemm_swiglu_plugin": "disable",
    "fp8_rowwise_gemm_plugin": "disable",
    "lora_plugin": "disable",
    "dora_plugin": "disable",
    "moe_plugin": "auto",
    "mamba_conv1d_plugin": "auto",
    "low_latency_gemm_plugin": "disable",
    "low_latency_gemm_swiglu_plugin": "disable",
    "gemm_allreduce_plugin": "disable",
    "context_fmha": "enable",
    "bert_context_fmha_fp32_acc": "disable",
    "remove_input_padding": "enable",
    "norm_quant_fusion": "disable",
    "reduce_fusion": "disable",  # NVIDIA's own sweep gained 0.5 % with it, on Llama only; the builder takes it off Qwen
    "user_buffer": "disable",
    "fuse_fp4_quant": "disable",
    "multiple_profiles": "enable",  # advised always (docs/source/legacy/performance/performance-tuning-guide)
    "paged_state": "disable",  # for Mamba; the builder takes it off a transformer and warns
    "streamingllm": "disable",
    "pp_reduce_scatter": "disable",
}
OMITTED = {
    "model_config": "the checkpoint has its own",
    "build_config": "it would hide the limits given here",
    "model_cls_file": "upstream's own model classes are used",
    "model_cls_name": "upstream's own model classes are used",
    "opt_num_tokens": "an error together with multiple_profiles",
    "paged_kv_cache": "deprecated; kv_cache_type says it",
    "strip_plan": "a bare flag, off",
    "weight_sparsity": "a bare flag, off",
    "weight_streaming": "a bare flag, off",
    "fast_build": "a bare flag, off: upstream says it does not go with int4",
    "enable_debug_output": "a bare flag, off",
    "visualize_network": "for debugging",
    "dry_run": "for debugging",
    "monitor_memory": "a bare flag, off",
    "gather_context_logits": "a bare flag, off: it would take KV reuse away, and the drift check does without",
    "gather_generation_logits": "deprecated; an option at run time",
    "gather_all_token_logits": "a bare flag, off",
    "lora_dir": "only with lora_plugin",
    "lora_ckpt_source": "only with lora_plugin",
    "lora_target_modules": "only with lora_plugin",
    "max_lora_rank": "only with lora_plugin",
}


def arguments(plan: Plan) -> dict[str, Value]:
    """Return every argument but ``PLACES``. The plan must be legal: it has limits then."""
    target, limits = plan.target, plan.limits
    if limits is None:
        raise ValueError("a plan that was refused has no arguments")
    paged = target.kv_reuse or target.chunked_context  # the one switch: what needs paged context FMHA, asks for it
    fp8 = target.weights in FP8_WORKFLOW
    speculative: dict[str, Value] = {}
    if target.speculative_mode != "none":
        speculative["speculative_decoding_mode"] = target.speculative_mode
    return {
        **FIXED,
        **speculative,
        "max_batch_size": limits.batch_size,
        "max_input_len": limits.seq_len,  # ignored with packed input; above max_seq_len it would be cut
        "max_seq_len": limits.seq_len,
        "max_num_tokens": limits.num_tokens,
        "max_draft_len": target.draft_tokens_max,
        "tokens_per_block": target.kv_block_tokens,
        # the head and other unquantized products; off for FP8 weights (performance-tuning-guide)
        "gemm_plugin": "disable" if target.weights == "fp8" else "auto",
        "nccl_plugin": "auto" if target.tensor_parallel * target.pipeline_parallel > 1 else "disable",
        "use_paged_context_fmha": _switch(paged),
        "use_fp8_context_fmha": _switch(paged and fp8 and target.kv_dtype == "fp8_e4m3"),
        # fuse_gate_mlp fuses no other format (tensorrt_llm/models/modeling_utils.py)
        "use_fused_mlp": _switch(target.weights in ("fp8", "model")),
    }


def _switch(on: bool) -> str:
    return "enable" if on else "disable"
