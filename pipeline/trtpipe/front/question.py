"""A request checked against the served model: what is asked of Triton, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.front import said
from trtpipe.front.bodies import ChatBody, CompletionBody, Generating
from trtpipe.front.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trtpipe.front.answer import Usage
    from trtpipe.front.backends import Backend
    from trtpipe.front.said import Said
    from trtpipe.front.settings import Served
    from trtpipe.triton_repo.exchange import Options, Prompt


@dataclass(frozen=True)
class Question:
    """``prompt_tokens``: as the release's preprocessing will count them; ``answer_tokens``: the longest answer."""

    prompt: Prompt
    prompt_tokens: int
    answer_tokens: int
    options: Options


async def check(body: ChatBody | CompletionBody, served: Served) -> Question:
    """Return what to ask. Raises ApiError where the model is another one or the lengths don't fit."""
    if body.model != served.model:
        raise ApiError(
            404,
            f"the model `{body.model}` is not served here; `{served.model}` is",
            param="model",
            code="model_not_found",
        )
    prompt = _prompt(body, served.tokenizer)
    try:
        # Another thread, because a long prompt takes tens of milliseconds.
        prompt_tokens = await run_in_threadpool(_count, prompt, served.tokenizer)
    except ChatError as fault:
        raise ApiError(400, str(fault), param="messages") from None
    return Question(prompt, prompt_tokens, _answer_tokens(body, prompt_tokens, served), body.options())


def _prompt(body: ChatBody | CompletionBody, tokenizer: ChatTokenizer) -> Prompt:
    """Return the conversation, or the text itself for a model that has no chat template.

    The template is applied by the release's preprocessing, once. It treats a plain text as a user's message; here
    that is written out, so that no text can pass for a conversation.
    """
    if isinstance(body, CompletionBody) and not tokenizer.has_template:
        return body.prompt
    return body.conversation()


def _count(prompt: Prompt, tokenizer: ChatTokenizer) -> int:
    return len(tokenizer.encode_plain(prompt) if isinstance(prompt, str) else tokenizer.encode_chat(prompt))


def _answer_tokens(body: Generating, prompt_tokens: int, served: Served) -> int:
    """Return the asked length of the answer; where none is asked for, what there is room for."""
    limits, asked = served.limits, body.answer_tokens
    if asked is not None and asked > limits.answer_tokens:
        raise ApiError(400, f"max_tokens is {asked}; at most {limits.answer_tokens} are served", param="max_tokens")
    if prompt_tokens + (asked or 1) > limits.context_tokens:
        raise ApiError(
            400,
            f"too long: {prompt_tokens} prompt tokens + {asked or 1} answer tokens; this model takes"
            f" {limits.context_tokens} in all",
            param="messages" if isinstance(body, ChatBody) else "prompt",
            code="context_length_exceeded",
        )
    return asked or min(limits.answer_tokens, limits.context_tokens - prompt_tokens)


async def ask(question: Question, backend: Backend, usage: Usage, request_id: str) -> AsyncGenerator[Said, None]:
    """Yield the parts of the answer, none of them empty, and keep ``usage`` true. Closing it cancels the request.

    Always a stream: of a unary request over HTTP, Triton 2.51 does not notice that nobody waits any more.
    """
    async with backend.client.pieces(
        question.prompt,
        max_tokens=question.answer_tokens,
        request_id=request_id,
        time_limit_s=backend.served.limits.request_s,
        **question.options,
    ) as pieces:
        async for piece in pieces:
            usage.completion_tokens += piece.new_tokens or 0
            usage.prompt_tokens = piece.prompt_tokens or usage.prompt_tokens
            if part := said.read(piece, backend.table):
                yield part
