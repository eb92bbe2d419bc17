"""Does it fit, and do the limits go together with the log?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.findings import Finding

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.capability import Speculation
    from trtpipe.engines.trtllm.capacity import Pool
    from trtpipe.engines.trtllm.lengths import Lengths
    from trtpipe.engines.trtllm.limits import Limits
    from trtpipe.engines.trtllm.shape import DecoderShape

GIB = 1 << 30
NUM_TOKENS_CHECK = "tensorrt_llm/_common.py check_max_num_tokens"
NUM_TOKENS_ADVISED_MAX = 16384  # check_max_num_tokens warns above
KV_MANAGER = "cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp"


def lengths_and_limits(
    limits: Limits, shape: DecoderShape, lengths: Lengths | None, *, chunked_context: bool
) -> Iterator[Finding]:
    if limits.seq_len > shape.positions:
        yield Finding(
            "warning",
            f"max_seq_len {limits.seq_len:,} is beyond the model's context of {shape.positions:,}",
            "max_seq_len",
            why="trtllm-build only warns",
            cost="positions that the model was never trained on: garbage in long conversations",
            fix=f"max_seq_len: {shape.positions}",
            source="tensorrt_llm/builder.py",
        )
    longest = lengths.prompt["max"] if lengths else None
    if longest is not None and longest >= limits.seq_len:
        yield Finding(
            "warning",
            f"the log's longest prompt has {longest:,} tokens, max_seq_len is {limits.seq_len:,}",
            "max_seq_len",
            cost="such requests are refused at run time",
            fix=f"max_seq_len above {longest:,}, or cut such prompts before they are sent",
        )
    if chunked_context:
        return
    ways = "chunked_context: true, which needs paged context FMHA (kv_dtype: model)"
    if longest is not None and limits.num_tokens < min(longest, limits.seq_len):
        yield Finding(
            "refused",
            f"the log's longest prompt has {longest:,} tokens, and a step takes {limits.num_tokens:,}",
            "max_num_tokens",
            why="without chunked context a prompt is prefilled whole, in one step",
            cost="such requests are refused at run time",
            fix=f"max_num_tokens: {longest} or more, at the price of activation memory; or {ways}",
            source="TensorRT-LLM issue 2702",
        )
    elif limits.num_tokens < limits.seq_len:
        yield Finding(
            "warning",
            f"prompts of {limits.num_tokens + 1:,} tokens and more are refused at run time: max_num_tokens is below "
            f"max_seq_len {limits.seq_len:,}",
            "max_num_tokens",
            why="without chunked context a prompt is prefilled whole, in one step",
            fix=f"max_num_tokens: {limits.seq_len}; or {ways}",
            source="TensorRT-LLM issue 2702",
        )


def fits(
    target: TensorrtLlmTarget,
    limits: Limits,
    pool: Pool,
    *,
    free_bytes: int,
    gpu_bytes: int,
    taken: str,
    wider: str | None,
) -> Iterator[Finding]:
    """Yield what the fullest GPU lacks room for. ``free_bytes``: left for the KV cache; ``taken``: by what the rest.

    ``wider``: settings with more GPUs under which a sequence of full length fits.
    """
    more = wider or "no larger TP size that is legal on one node fits"
    more += "; or a larger GPU, or a smaller max_num_tokens"
    if free_bytes <= 0:
        yield Finding(
            "refused",
            f"the engine does not fit: {(gpu_bytes - free_bytes) / GIB:.1f} GiB a GPU that has {gpu_bytes / GIB:.1f}",
            "gpu, tensor_parallel",
            why=taken,
            fix=more,
        )
        return
    if pool.tokens < limits.seq_len:
        yield Finding(
            "refused",
            f"the KV cache holds {pool.tokens:,} tokens, less than one sequence of max_seq_len {limits.seq_len:,}",
            "max_seq_len, kv_dtype",
            why=f"{free_bytes / GIB:.2f} GiB are left for it ({taken}); the runtime shortens what it accepts, and says "
            "so in its log only",
            cost="long requests, or all, are refused at run time",
            fix=f"a smaller max_seq_len; {more}; an 8-bit KV cache holds twice the tokens",
            source=f"{KV_MANAGER}; seen by a user of 1.2.1: length 1, every prompt refused",
        )
        return
    full = limits.batch_size * limits.seq_len
    if target.max_batch_size != "auto" and full > pool.tokens:
        yield Finding(
            "warning",
            f"{limits.batch_size} sequences of full length need {full * pool.bytes_per_token / GIB:,.0f} GiB of KV "
            f"cache a GPU, and {pool.sequences(limits.seq_len):,} fit",
            "max_batch_size",
            why=f"{pool.bytes_per_token:,} B a token",
            cost="the rest wait in the queue; buffers for the full batch are taken all the same",
            fix=f"max_batch_size: {max(pool.sequences(limits.seq_len), 1)} or auto",
            source="TensorRT-LLM issue 401",
        )


def step_size(limits: Limits) -> Iterator[Finding]:
    if limits.num_tokens > limits.most_num_tokens:
        yield Finding(
            "changed",
            f"max_num_tokens {limits.num_tokens:,} becomes {limits.most_num_tokens:,}",
            "max_num_tokens",
            why="trtllm-build cuts it to max_seq_len x max_batch_size",
            fix=f"max_num_tokens: {limits.most_num_tokens}, or auto",
            source=NUM_TOKENS_CHECK,
        )
    if min(limits.num_tokens, limits.most_num_tokens) > NUM_TOKENS_ADVISED_MAX:
        yield Finding(
            "warning",
            f"max_num_tokens {limits.num_tokens:,} is above {NUM_TOKENS_ADVISED_MAX:,}",
            "max_num_tokens, max_seq_len",
            why="upstream expects no gain from more, and tensors of a step can grow past what TensorRT can hold",
            cost="activation memory; in the worst case an error at run time",
            fix="chunked_context: true, or a smaller max_seq_len",
            source=NUM_TOKENS_CHECK,
        )


def rewritten(target: TensorrtLlmTarget, limits: Limits, mode: Speculation) -> Iterator[Finding]:
    """Yield the limits that the builder raises for a speculative mode."""
    draft = target.draft_tokens_max
    if mode.mode == "none" or not draft:
        return
    yield Finding(
        "changed",
        f"max_seq_len {limits.seq_len:,} becomes {limits.seq_len + draft:,}",
        "draft_tokens_max",
        why="the builder adds the draft tokens; answers get no longer by it",
        source=mode.source,
    )
    step = limits.batch_size * (draft + 1)
    if step > limits.num_tokens:
        yield Finding(
            "changed",
            f"max_num_tokens {limits.num_tokens:,} becomes {step:,}",
            "max_num_tokens, max_batch_size",
            why="max_batch_size x (draft_tokens_max + 1) must fit into a step",
            cost="more activation memory than planned here",
            fix=f"max_batch_size: {max(limits.num_tokens // (draft + 1), 1)}, or max_num_tokens: {step}",
            source=mode.source,
        )


def window(shape: DecoderShape, limits: Limits) -> Iterator[Finding]:
    if shape.window is not None and shape.window < limits.seq_len:
        yield Finding(
            "warning",
            f"the model looks back {shape.window:,} tokens only, which no checkpoint says",
            "config.json sliding_window",
            why="the window is a setting of the runtime (max_attention_window_size), at all tokens in a release",
            cost=f"sequences beyond {shape.window:,} tokens are computed otherwise than the model was trained",
            fix=f"max_seq_len: {shape.window}",
        )
