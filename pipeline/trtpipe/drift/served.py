"""Whether Triton serves what the release's own engine prefers, and whether the answers are answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from trtpipe.drift import gate, statistics
from trtpipe.drift.gate import Evidence, Finding, Metric, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtpipe.core.scores import Scores
    from trtpipe.drift.policy import Policy

AGREEMENT = Metric("top1_agreement", "share of tokens", "min")
REPEATED_TOKENS_MIN = 4
REPEATED_SHARE_MAX = 0.8
# A prompt may rightly get an empty answer; a server that mostly gives such answers is broken.
DEGENERATE_SHARE_MAX = 0.5


class ServedPrompt(BaseModel):
    """One answer: its tokens, and how many of them the engine prefers after the tokens before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    tokens: int
    agreeing_tokens: int
    empty: bool
    one_token_repeated: bool


class Served(BaseModel):
    """The served answers, judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agreement: Finding
    answers_outcome: Outcome
    answers_reason: str
    prompts: list[ServedPrompt]


def judge_served(scores: Scores, eos_ids: Collection[int], policy: Policy) -> Served:
    """Judge answers that were given greedily through Triton and then scored by the release's engine.

    A row of ``scores`` is one answer; an answer of nothing but ending tokens is an empty one.
    """
    agreeing = scores.argmax == scores.token_ids
    rows = zip(scores.row_ids, scores.row_offsets[:-1], scores.row_offsets[1:], strict=True)
    prompts = [
        _prompt(row_id, scores.token_ids[start:end], agreeing[start:end], eos_ids) for row_id, start, end in rows
    ]
    estimate = statistics.ratio_of_sums(
        np.array([prompt.agreeing_tokens for prompt in prompts]),
        np.array([prompt.tokens for prompt in prompts]),
        confidence=policy.confidence,
        resamples=policy.bootstrap_resamples,
    )
    evidence = Evidence("served", len(prompts), scores.tokens, policy.served_prompts)
    outcome, reason = _judge_answers(prompts)
    return Served(
        agreement=gate.judge(AGREEMENT, estimate, policy.served_top1_agreement_min, evidence),
        answers_outcome=outcome,
        answers_reason=reason,
        prompts=prompts,
    )


def _prompt(
    row_id: str, token_ids: NDArray[np.int32], agreeing: NDArray[np.bool_], eos_ids: Collection[int]
) -> ServedPrompt:
    tokens = len(token_ids)
    most_frequent = int(np.unique(token_ids, return_counts=True)[1].max())
    return ServedPrompt(
        id=row_id,
        tokens=tokens,
        agreeing_tokens=int(agreeing.sum()),
        empty=bool(np.isin(token_ids, list(eos_ids)).all()),
        one_token_repeated=tokens >= REPEATED_TOKENS_MIN and most_frequent > REPEATED_SHARE_MAX * tokens,
    )


def _judge_answers(prompts: list[ServedPrompt]) -> tuple[Outcome, str]:
    empty = [prompt.id for prompt in prompts if prompt.empty]
    repeated = [prompt.id for prompt in prompts if prompt.one_token_repeated and not prompt.empty]
    reason = f"served: of {len(prompts)} answers {len(empty)} empty, {len(repeated)} one token over and over"
    degenerate = empty + repeated
    if degenerate:
        reason += f" ({', '.join(degenerate[:5])})"
    return "fail" if len(degenerate) > DEGENERATE_SHARE_MAX * len(prompts) else "pass", reason
