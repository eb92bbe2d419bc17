"""Small scores of known distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trtpipe.core.scores import TOP_TOKENS, Scores
from trtpipe.drift.policy import Limits, Policy

VOCABULARY = 48


def log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def scores(
    logs: NDArray[np.float64],
    token_ids: NDArray[np.int64],
    lengths: list[int],
    *,
    top_ids: NDArray[np.int32] | None = None,
) -> Scores:
    """Scores of log-probabilities [N, V]; rows r0, r1, ... of these lengths."""
    if top_ids is None:
        top_ids = np.argsort(-logs, axis=1)[:, :TOP_TOKENS].astype(np.int32)
    return Scores(
        row_ids=tuple(f"r{index}" for index in range(len(lengths))),
        row_offsets=np.cumsum([0, *lengths]).astype(np.int64),
        token_ids=token_ids.astype(np.int32),
        observed=logs[np.arange(len(logs)), token_ids].astype(np.float32),
        top_ids=top_ids,
        top=np.take_along_axis(logs, top_ids.astype(np.int64), axis=1).astype(np.float32),
        argmax=logs.argmax(axis=1).astype(np.int32),
    )


def logits_of(seed: int, lengths: list[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits [N, V] of a made-up model, and observed tokens that are often unlikely ones."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, 2, (sum(lengths), VOCABULARY)), rng.integers(0, VOCABULARY, sum(lengths))


def pair(seed: int, lengths: list[int], noise: float) -> tuple[Scores, Scores]:
    """A baseline, and a candidate whose logits are off by ``noise``."""
    logits, token_ids = logits_of(seed, lengths)
    off = np.random.default_rng(seed + 1).normal(0, 1, logits.shape) * noise
    baseline = scores(log_softmax(logits), token_ids, lengths)
    return baseline, scores(log_softmax(logits + off), token_ids, lengths, top_ids=baseline.top_ids)


def answers(token_ids: list[list[int]], preferred: list[list[int]]) -> Scores:
    """Scores of served answers of which only the tokens and the engine's preferences matter."""
    tokens = sum(map(len, token_ids))
    return Scores(
        row_ids=tuple(f"r{index}" for index in range(len(token_ids))),
        row_offsets=np.cumsum([0, *map(len, token_ids)]).astype(np.int64),
        token_ids=np.concatenate([np.array(ids, dtype=np.int32) for ids in token_ids]),
        observed=np.full(tokens, -1.0, dtype=np.float32),
        top_ids=np.tile(np.arange(TOP_TOKENS, dtype=np.int32), (tokens, 1)),
        top=np.full((tokens, TOP_TOKENS), -3.0, dtype=np.float32),
        argmax=np.concatenate([np.array(ids, dtype=np.int32) for ids in preferred]),
    )


def policy(**changes: object) -> Policy:
    limits = Limits(kl_top20_nats_max=0.05, top1_agreement_min=0.94, perplexity_ratio_max=1.03)
    plain: dict[str, object] = {
        "why": "a test",
        "overall": limits,
        "per_segment": limits,
        "heldout_prompts_min": 10,
        "heldout_prompts_per_segment_min": 5,
        "confidence": 0.95,
        "bootstrap_resamples": 500,
        "served_prompts": 3,
        "served_top1_agreement_min": 0.9,
    }
    return Policy.model_validate(plain | changes)
