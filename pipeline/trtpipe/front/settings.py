"""What one front serves, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass

from trtpipe.core.chat import ChatTokenizer


@dataclass(frozen=True)
class Limits:
    """``context_tokens``: prompt plus answer, the engine's own limit; the others are the front's."""

    context_tokens: int
    answer_tokens: int
    body_bytes: int
    requests_in_flight: int
    request_s: float
    drain_s: float


@dataclass(frozen=True)
class Served:
    """``tokenizer``: the release's own, to count with. ``api_key``: None where everybody may ask."""

    model: str
    created: int
    triton_url: str
    tokenizer: ChatTokenizer
    limits: Limits
    api_key: str | None
