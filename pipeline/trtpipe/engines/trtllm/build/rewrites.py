"""What the builder makes of the arguments without asking, known before it runs.

From `tensorrt_llm/builder.py` (update_kv_cache_type, _init_max_seq_len, build) and `tensorrt_llm/_common.py`
(check_max_num_tokens), texts of October 2025. Only rules that can touch what chosen.py asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.capability import FP8_WORKFLOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtpipe.engines.trtllm.build.grammar import Value
    from trtpipe.engines.trtllm.plan import Plan


def effective(asked: Mapping[str, Value], plan: Plan) -> dict[str, Value]:
    """Return the arguments as the engine's config.json will have them."""
    got, target = dict(asked), plan.target
    seq_len, step = int(asked["max_seq_len"]), int(asked["max_num_tokens"])
    batch, draft = int(asked["max_batch_size"]), int(asked["max_draft_len"])
    step = max(min(step, seq_len * batch), int(asked["tokens_per_block"]))
    if "speculative_decoding_mode" in asked:
        seq_len, step = seq_len + draft, max(step, batch * (draft + 1))
    got |= {"max_seq_len": seq_len, "max_num_tokens": step}
    fp8_attention = target.weights in FP8_WORKFLOW and plan.gpu.sm >= 89
    if not fp8_attention:
        got["use_fp8_context_fmha"] = "disable"
    if target.kv_dtype == "int8" or (target.kv_dtype == "fp8_e4m3" and not fp8_attention):
        got["use_paged_context_fmha"] = "disable"
    if target.speculative_mode == "eagle":
        got["use_paged_context_fmha"] = "enable"
    return got
