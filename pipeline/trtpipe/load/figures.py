"""A loop in figures: each with the number of samples that it rests on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtpipe.load.closed_loop import Loop

QUANTILES = {"p50": 0.5, "p95": 0.95}


def of(loop: Loop, count_tokens: Callable[[str], int]) -> dict[str, Any]:
    """Return them. ``count_tokens``: of an answer's text.

    ``ttft``: from sending to the first text; ``tpot``: from the first text to the last, by token after the first.
    """
    whole = [answer for answer in loop.answers if answer.fault is None]
    tokens = [count_tokens(answer.text) for answer in whole]
    later = [
        (answer.last_s - answer.first_s) / (count - 1) for answer, count in zip(whole, tokens, strict=True) if count > 1
    ]
    return {
        "clients": loop.clients,
        "requests": len(loop.answers),
        "failed": len(loop.answers) - len(whole),
        "faults": dict(Counter(answer.fault for answer in loop.answers if answer.fault)),
        "seconds": round(loop.seconds, 3),
        "answer_tokens": sum(tokens),
        "answer_tokens_per_second": round(sum(tokens) / loop.seconds, 2),
        "requests_per_second": round(len(whole) / loop.seconds, 3),
        "ttft_ms": _spread([answer.first_s for answer in whole]),
        "tpot_ms": _spread(later),
        "tokens_counted": "by encoding the answers again",
    }


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    if not seconds:
        return {"samples": 0}
    return {"samples": len(seconds)} | {
        name: round(float(np.quantile(seconds, share)) * 1e3, 3) for name, share in QUANTILES.items()
    }
