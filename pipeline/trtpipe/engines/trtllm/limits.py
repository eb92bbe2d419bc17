"""max_seq_len, max_num_tokens and max_batch_size: as the target says, or chosen, with the reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trtpipe.core.sharing import padded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.capacity import Pool
    from trtpipe.engines.trtllm.lengths import Lengths
    from trtpipe.engines.trtllm.shape import DecoderShape

ASSUMED_SEQ_LEN = 8192  # where nothing says how long prompts are
STEP_TOKENS = 8192  # trtllm-build's default of max_num_tokens (T:tensorrt_llm/commands/build.py)
# T:docs/source/legacy/performance/performance-tuning-guide (Llama-3.3-70B, TP4): 512 requests were faster than 64 and
# 2048; 2,048 to 16,384 tokens a step were within 1 %.
BATCH_SIZE_MAX = 512


@dataclass(frozen=True)
class Limits:
    """What the engine is built for, and why."""

    seq_len: int
    num_tokens: int
    batch_size: int
    seq_len_why: str
    num_tokens_why: str
    batch_size_why: str

    @property
    def most_num_tokens(self) -> int:
        """What trtllm-build cuts max_num_tokens to (T:tensorrt_llm/_common.py check_max_num_tokens)."""
        return self.seq_len * self.batch_size

    def document(self) -> dict[str, Any]:
        names = {"seq_len": "max_seq_len", "num_tokens": "max_num_tokens", "batch_size": "max_batch_size"}
        values = asdict(self)
        return {name: {"value": values[key], "why": values[f"{key}_why"]} for key, name in names.items()}


def candidates(
    target: TensorrtLlmTarget, shape: DecoderShape, lengths: Lengths | None, *, chunked_context: bool
) -> Iterator[Limits]:
    """Yield the limits that an engine may have, from the largest batch down: powers of two, as upstream's sweeps use.

    Which of them holds, the memory decides: a larger batch has larger buffers, and they leave a smaller KV cache to
    feed it. ``chunked_context``: what the engine will really do.
    """
    seq_len, seq_why = _seq_len(target, shape, lengths)
    tokens, tokens_why = _num_tokens(target, seq_len, chunked_context=chunked_context)
    if target.max_batch_size != "auto":
        yield _cut(Limits(seq_len, tokens, target.max_batch_size, seq_why, tokens_why, "the target says so"), target)
        return
    most = max(min(BATCH_SIZE_MAX, tokens // (target.draft_tokens_max + 1)), 1)
    for power in reversed(range(most.bit_length())):
        yield _cut(Limits(seq_len, tokens, 1 << power, seq_why, tokens_why, ""), target)


def _cut(limits: Limits, target: TensorrtLlmTarget) -> Limits:
    if target.max_num_tokens != "auto" or limits.num_tokens <= limits.most_num_tokens:
        return limits
    why = "max_seq_len x max_batch_size, to which trtllm-build would cut it"
    return replace(limits, num_tokens=limits.most_num_tokens, num_tokens_why=why)


def fed(limits: Limits, target: TensorrtLlmTarget, pool: Pool, lengths: Lengths | None) -> Limits | None:
    """Return a candidate with the reason for its batch; None where the KV cache beside it does not feed as many.

    It must hold a sequence of full length too. One request is always taken: `memory_checks.fits` says where not even
    that one has its KV cache.
    """
    if target.max_batch_size != "auto":
        return limits
    typical, words = limits.seq_len, "sequences of full length"
    if lengths is not None:
        typical = min(lengths.sequence_tokens("p50", target.answer_tokens_max), limits.seq_len)
        words = f"sequences of the log's median length ({typical:,} tokens)"
    fits = pool.sequences(typical)
    if limits.batch_size > 1 and (limits.batch_size > fits or pool.tokens < limits.seq_len):
        return None
    why = f"beside the buffers for {limits.batch_size}, the KV cache holds {fits:,} {words}"
    if fits > BATCH_SIZE_MAX:
        why += f"; more than {BATCH_SIZE_MAX} in one step were slower in NVIDIA's own sweep"
    return replace(limits, batch_size_why=why)


def _seq_len(target: TensorrtLlmTarget, shape: DecoderShape, lengths: Lengths | None) -> tuple[int, str]:
    if target.max_seq_len != "auto":
        return target.max_seq_len, "the target says so"
    if lengths is None:
        length = min(ASSUMED_SEQ_LEN, shape.positions)
        return length, "no length profile was given: an assumption (give --profile)"
    answer = max(target.answer_tokens_max, lengths.answer.get("max", 0))
    wanted = padded(lengths.prompt["max"] + answer, target.kv_block_tokens)
    longest = f"the log's longest prompt ({lengths.prompt['max']:,} tokens) and an answer of {answer:,}"
    if wanted > shape.positions:
        return shape.positions, f"the model's context; {longest} would need {wanted:,}"
    return wanted, f"{longest}, in whole KV blocks"


def _num_tokens(target: TensorrtLlmTarget, seq_len: int, *, chunked_context: bool) -> tuple[int, str]:
    if target.max_num_tokens != "auto":
        return target.max_num_tokens, "the target says so"
    if chunked_context:
        return STEP_TOKENS, "trtllm-build's default; longer prompts are prefilled in pieces"
    if seq_len <= STEP_TOKENS:
        return STEP_TOKENS, "trtllm-build's default, which holds any prompt whole"
    return seq_len, "without chunked context a prompt must fit into one step whole, up to max_seq_len"
