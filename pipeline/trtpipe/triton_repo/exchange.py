"""What a client sends and gets on every route: the inputs by the contract's names, and the faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from trtpipe.errors import EnvironmentUnfit, ToolFailed

# A text, or the messages of a conversation, each with `role` and `content`.
Prompt = str | Sequence[dict[str, str]]
# The two ways through preprocessing, engine and postprocessing; their answers are equal.
Model = Literal["ensemble", "tensorrt_llm_bls"]
MODELS: tuple[Model, ...] = get_args(Model)

TIME_LIMIT_S = 120.0
CONNECT_LIMIT_S = 5.0
# Between two tries of a connection that was refused.
RETRY_S = 0.2


class Options(TypedDict, total=False):
    """What decides an answer beside the prompt and its length. Without top_k and top_p the likeliest token is taken."""

    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    min_tokens: int
    seed: int
    stop_words: list[str]
    end_id: int
    guided_decoding_guide_type: str
    guided_decoding_guide: str
    return_log_probs: bool


@dataclass(frozen=True)
class Piece:
    """One response. The counts are there where they were asked for: the prompt's tokens, and those new with this piece.

    Tokens that end an answer are not among them; those of a stop word are, though their text is not shown.
    ``log_probs``: natural logarithms, of the new tokens, in the model's own distribution: before temperature, top_k,
    top_p and penalties on the local engine. With ``return_log_probs`` only. ``log_prob_ids``: the ids of those tokens;
    the ensemble of a TensorRT-LLM release has none.
    """

    text: str
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    log_probs: tuple[float, ...] | None = None
    log_prob_ids: tuple[int, ...] | None = None


class Unavailable(ToolFailed):
    """The server has no place for the request, or no engine: status 503. It was not answered."""


class NoServer(EnvironmentUnfit):
    """Nobody accepts connections at the address: the request was not sent."""

    def __init__(self, where: str) -> None:
        super().__init__("no server answers", where=where, fix="start one with `trtpipe serve`, or check the address")


class Refused(ToolFailed):
    """The server says that the request itself is wrong. Over gRPC a stream does not tell this from a failure."""


class OutOfTime(ToolFailed):
    """The answer was not there within the time limit; the request has been cancelled."""

    def __init__(self, time_limit_s: float, where: str) -> None:
        super().__init__(f"no answer within {time_limit_s:g} s", where=where, fix="see the server's log")


def inputs(
    prompt: Prompt, max_tokens: int, options: Options | dict[str, Any], *, stream: bool, counted: bool = False
) -> dict[str, Any]:
    """Return the tensors of one request; messages travel as a JSON document. ``counted``: ask for counts of tokens."""
    text = prompt if isinstance(prompt, str) else json.dumps({"messages": list(prompt)}, ensure_ascii=False)
    counts = dict.fromkeys(("return_num_input_tokens", "return_num_output_tokens"), True) if counted else {}
    return {"text_input": text, "max_tokens": max_tokens, "stream": stream, **counts, **options}
