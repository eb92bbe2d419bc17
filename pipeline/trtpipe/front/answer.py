"""Answers in OpenAI's documents: whole, or in pieces."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

from trtpipe.front.said import Said

Finish = Literal["stop", "length"]


@dataclass
class Usage:
    """The engine's own counts, which grow while an answer comes: see ``exchange.Piece``."""

    prompt_tokens: int
    completion_tokens: int = 0

    def document(self) -> dict[str, int]:
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }


@dataclass(frozen=True)
class Form(ABC):
    """How one endpoint writes an answer. ``usage_in_stream``: whether the client has asked for it."""

    request_id: str
    model: str
    usage_in_stream: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    @abstractmethod
    def whole(self, said: Said, finish: Finish, usage: Usage) -> dict[str, Any]: ...

    def opening(self) -> list[dict[str, Any]]:
        """Return what a stream begins with."""
        return []

    @abstractmethod
    def piece(self, said: Said) -> dict[str, Any]: ...

    def closing(self, finish: Finish, usage: Usage) -> list[dict[str, Any]]:
        """Return what a stream ends with."""
        last = [{**self._chunk([]), "usage": usage.document()}] if self.usage_in_stream else []
        return [self._last(finish), *last]

    @abstractmethod
    def _last(self, finish: Finish) -> dict[str, Any]: ...

    @abstractmethod
    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]: ...

    def _head(self, prefix: str, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"{prefix}-{self.request_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


class ChatForm(Form):
    """/v1/chat/completions"""

    def whole(self, said: Said, finish: Finish, usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": said.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": self._log_probs(said), "finish_reason": finish}
        return {**self._head("chatcmpl", "chat.completion", [choice]), "usage": usage.document()}

    def opening(self) -> list[dict[str, Any]]:
        return [self._delta({"role": "assistant", "content": ""})]

    def piece(self, said: Said) -> dict[str, Any]:
        return self._delta({"content": said.text}, self._log_probs(said))

    def _last(self, finish: Finish) -> dict[str, Any]:
        return self._delta({}, finish=finish)

    @staticmethod
    def _log_probs(said: Said) -> dict[str, Any] | None:
        if said.tokens is None:
            return None
        return {"content": [token.document() for token in said.tokens], "refusal": None}

    def _delta(
        self, delta: dict[str, str], log_probs: dict[str, Any] | None = None, finish: Finish | None = None
    ) -> dict[str, Any]:
        return self._chunk([{"index": 0, "delta": delta, "logprobs": log_probs, "finish_reason": finish}])

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head("chatcmpl", "chat.completion.chunk", choices)


class CompletionForm(Form):
    """/v1/completions"""

    def whole(self, said: Said, finish: Finish, usage: Usage) -> dict[str, Any]:
        return {**self.piece(said, finish), "usage": usage.document()}

    def piece(self, said: Said, finish: Finish | None = None) -> dict[str, Any]:
        choice = {"index": 0, "text": said.text, "logprobs": self._log_probs(said), "finish_reason": finish}
        return self._chunk([choice])

    def _last(self, finish: Finish) -> dict[str, Any]:
        return self.piece(Said(""), finish)

    @staticmethod
    def _log_probs(said: Said) -> dict[str, Any] | None:
        """Where a token begins in the text is left open: it may be a part of a character, or be spelled anew."""
        if said.tokens is None:
            return None
        return {
            "tokens": [token.text for token in said.tokens],
            "token_logprobs": [token.log_prob for token in said.tokens],
            "top_logprobs": None,
            "text_offset": None,
        }

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head("cmpl", "text_completion", choices)
