"""Ask a served model over HTTP or gRPC, in one piece or as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trtpipe.triton_repo import grpc_route, http_route

# The two ways through preprocessing, engine and postprocessing; their answers are equal.
Model = Literal["ensemble", "tensorrt_llm_bls"]
MODELS: tuple[Model, ...] = get_args(Model)
TIME_LIMIT_S = 120.0


@dataclass(frozen=True)
class Answer:
    """``chunks``: non-empty texts that arrived, one for a unary request; ``first_chunk_s``: time to the first."""

    text: str
    chunks: int
    first_chunk_s: float
    seconds: float


def ask(
    url: str,
    prompt: str | Sequence[dict[str, str]],
    *,
    max_tokens: int,
    model: Model = "ensemble",
    stream: bool = False,
    options: dict[str, Any] | None = None,
    on_chunk: Callable[[str], None] = lambda text: None,
    time_limit_s: float = TIME_LIMIT_S,
) -> Answer:
    """Send one prompt (text, or messages with role and content) and return the answer.

    ``url``: the server's, as ``http://host:port`` or ``grpc://host:port``. ``options``: further inputs of the model,
    such as temperature. ``on_chunk`` gets each piece of text as it comes.
    Raises EnvironmentUnfit where no server answers, ToolFailed with the server's words where it refuses or fails.
    """
    text_input = prompt if isinstance(prompt, str) else json.dumps({"messages": list(prompt)}, ensure_ascii=False)
    inputs = {"text_input": text_input, "max_tokens": max_tokens, "stream": stream, **(options or {})}
    route = grpc_route if url.startswith(grpc_route.SCHEME) else http_route
    started = time.monotonic()
    arrivals: list[float] = []
    texts: list[str] = []
    for text in route.texts(url, model, inputs, stream=stream, time_limit_s=time_limit_s):
        if text:
            arrivals.append(time.monotonic() - started)
            texts.append(text)
            on_chunk(text)
    seconds = time.monotonic() - started
    return Answer("".join(texts), len(texts), arrivals[0] if arrivals else seconds, seconds)
