"""What two teacher-forced passes over the same tokens say about drift, summed by row (one row is one prompt)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtpipe.errors import Stale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtpipe.core.scores import Scores

# What float32 log-probabilities leave undecided in 1 - sum(p): a smaller tail is noise, or below zero.
TAIL_FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over the scored tokens of each of R rows; a metric is a sum over rows divided by their tokens."""

    row_ids: tuple[str, ...]
    tokens: NDArray[np.int64]  # [R]
    kl_top20_nats: NDArray[np.float64]  # [R]
    agreeing_tokens: NDArray[np.int64]  # [R]: both sides prefer the same token
    baseline_nll_nats: NDArray[np.float64]  # [R]: negative log-likelihood of the observed tokens
    candidate_nll_nats: NDArray[np.float64]  # [R]

    def select(self, chosen: NDArray[np.bool_]) -> RowSums:
        """Return the rows where ``chosen`` [R] is true."""
        return RowSums(
            row_ids=tuple(row_id for row_id, keep in zip(self.row_ids, chosen, strict=True) if keep),
            tokens=self.tokens[chosen],
            kl_top20_nats=self.kl_top20_nats[chosen],
            agreeing_tokens=self.agreeing_tokens[chosen],
            baseline_nll_nats=self.baseline_nll_nats[chosen],
            candidate_nll_nats=self.candidate_nll_nats[chosen],
        )


def compare(baseline: Scores, candidate: Scores) -> RowSums:
    """Sum the metrics by row.

    Raises Stale where the two passes did not see the same rows and tokens, or report other top tokens.
    """
    _require_same_text(baseline, candidate)
    starts = baseline.row_offsets[:-1]

    def by_row(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(values, starts)

    return RowSums(
        row_ids=baseline.row_ids,
        tokens=np.diff(baseline.row_offsets),
        kl_top20_nats=by_row(kl_top20_nats(baseline, candidate)),
        agreeing_tokens=np.add.reduceat((baseline.argmax == candidate.argmax).astype(np.int64), starts),
        baseline_nll_nats=by_row(-baseline.observed.astype(np.float64)),
        candidate_nll_nats=by_row(-candidate.observed.astype(np.float64)),
    )


def kl_top20_nats(baseline: Scores, candidate: Scores) -> NDArray[np.float64]:
    """Return a lower bound of KL(baseline || candidate) for each token, [N].

    Both distributions are merged into 22 buckets: the baseline's top 20 tokens, the observed token unless it
    is one of them, and all the rest. Merging can only lower the divergence (log-sum inequality, Cover and
    Thomas, Elements of Information Theory, theorem 2.7.1).
    """
    p_log, q_log = _log_buckets(baseline), _log_buckets(candidate)
    p = np.exp(p_log)
    difference = np.subtract(p_log, q_log, out=np.zeros_like(p), where=p > 0)
    total: NDArray[np.float64] = (p * difference).sum(axis=1)
    return total


def _log_buckets(scores: Scores) -> NDArray[np.float64]:
    """Return the log-probabilities of the buckets, [N, 22], each row normalised against rounding."""
    in_top = (scores.top_ids == scores.token_ids[:, None]).any(axis=1)
    observed = np.where(in_top, -np.inf, scores.observed)
    named = np.column_stack([scores.top, observed]).astype(np.float64)
    named_total = np.exp(named).sum(axis=1)
    tail = np.maximum(1.0 - named_total, TAIL_FLOOR)
    logs: NDArray[np.float64] = np.column_stack([named, np.log(tail)]) - np.log(named_total + tail)[:, None]
    return logs


def _require_same_text(baseline: Scores, candidate: Scores) -> None:
    if baseline.row_ids != candidate.row_ids:
        pairs = zip(baseline.row_ids, candidate.row_ids, strict=False)
        odd = next((f"row {ours} against {theirs}" for ours, theirs in pairs if ours != theirs), None)
        raise _other("rows", odd or f"{len(baseline.row_ids)} rows against {len(candidate.row_ids)}")
    lengths_differ = np.diff(baseline.row_offsets) != np.diff(candidate.row_offsets)
    if lengths_differ.any():
        raise _other("numbers of tokens", f"row {baseline.row_ids[int(np.argmax(lengths_differ))]}")
    differing = {
        "token ids": baseline.token_ids != candidate.token_ids,
        "top tokens": (baseline.top_ids != candidate.top_ids).any(axis=1),
    }
    for name, differs in differing.items():
        if differs.any():
            token = int(np.argmax(differs))
            row = int(np.searchsorted(baseline.row_offsets, token, side="right")) - 1
            position = token - int(baseline.row_offsets[row])
            raise _other(name, f"row {baseline.row_ids[row]}, scored token {position}")


def _other(what: str, where: str) -> Stale:
    return Stale(
        f"the candidate was scored on other {what} than the baseline",
        where=where,
        fix="score both again on the same prompt set, the baseline first",
    )
