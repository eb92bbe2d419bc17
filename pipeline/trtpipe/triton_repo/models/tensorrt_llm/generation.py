"""A request to the engine: read from its tensors, checked, and refused in words where it can't be served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import guidance
from parameters import BEAMS, RequestError, refuse_beams

# Tensors arrive as flat lists; the batch is always one prompt.
Values = dict[str, list[Any]]


@dataclass(frozen=True)
class Limits:
    """What the loaded engine can take. ``tokens``: prompt plus answer."""

    tokens: int
    vocabulary: int
    eos_ids: frozenset[int]


@dataclass(frozen=True)
class Generation:
    """One prompt with everything that decides its answer.

    ``end_ids``: the tokens that end the answer. ``stop_words``: id sequences whose text ends it; ``bad_words``: those
    that never come. Before ``answer_tokens_min`` tokens neither an ending token nor a stop word ends it.
    ``guide``: what the answer must look like, as vLLM's StructuredOutputsParams has it. ``sampling``: keyword arguments
    of vLLM's SamplingParams. ``log_probs``, ``counts_prompt``, ``counts_answer``: what
    the client wants to be told.
    """

    prompt_ids: list[int]
    answer_tokens_min: int
    answer_tokens_max: int
    end_ids: frozenset[int]
    stop_words: list[list[int]]
    bad_words: list[list[int]]
    streaming: bool
    guide: dict[str, Any] | None
    sampling: dict[str, Any]
    log_probs: bool
    counts_prompt: bool
    counts_answer: bool

    def counts(self, new_tokens: int) -> dict[str, int]:
        """Return the counts of one response by the names of their tensors; TensorRT-LLM counts new tokens only too."""
        prompt = {"num_input_tokens": len(self.prompt_ids)} if self.counts_prompt else {}
        return prompt | ({"num_output_tokens": new_tokens} if self.counts_answer else {})


def read(values: Values, limits: Limits) -> Generation:
    """Build the generation. Raises RequestError."""
    prompt_ids = _prompt(values, limits)
    answer_tokens_max = int(_scalar(values, "request_output_len", 0))
    if answer_tokens_max < 1:
        raise RequestError(f"request_output_len (max_tokens) is {answer_tokens_max}; ask for at least 1 token")
    if len(prompt_ids) + answer_tokens_max > limits.tokens:
        raise RequestError(
            f"too long: {len(prompt_ids)} prompt tokens + {answer_tokens_max} requested answer tokens"
            f" = {len(prompt_ids) + answer_tokens_max}; this engine takes {limits.tokens} in all"
        )
    guide, end_ids = guidance.read(values.get("guide_bytes", [])), _end_ids(values, limits)
    if guide and not (limits.eos_ids and limits.eos_ids <= end_ids):
        # vLLM's grammar takes the model's own ending token for the end of the document, and anything behind it.
        raise RequestError("a guided answer ends with the model's own ending tokens: leave end_id out")
    return Generation(
        prompt_ids=prompt_ids,
        answer_tokens_min=_answer_tokens_min(values, answer_tokens_max),
        answer_tokens_max=answer_tokens_max,
        end_ids=end_ids,
        stop_words=_words("stop_words_list", values, limits),
        bad_words=_words("bad_words_list", values, limits),
        streaming=bool(_scalar(values, "streaming", False)),
        guide=guide,
        sampling=_sampling(values),
        log_probs=bool(_scalar(values, "return_log_probs", False)),
        counts_prompt=bool(_scalar(values, "return_num_input_tokens", False)),
        counts_answer=bool(_scalar(values, "return_num_output_tokens", False)),
    )


def is_stop(values: Values, request_id: str) -> bool:
    """True where the request is there to end the one with the same id. Raises RequestError."""
    wanted = bool(_scalar(values, "stop", False))
    if wanted and not request_id:
        raise RequestError("stop needs an id: the one that the request to be ended was sent with")
    return wanted


def _scalar(values: Values, name: str, default: Any) -> Any:
    found = values.get(name)
    if not found:
        return default
    if len(found) > 1:
        raise RequestError(f"{name} has {len(found)} values; give one")
    return found[0]


def _prompt(values: Values, limits: Limits) -> list[int]:
    ids = values.get("input_ids", [])
    if not ids:
        raise RequestError("the prompt is empty: give input_ids")
    length = _scalar(values, "input_lengths", None)
    if length != len(ids):
        raise RequestError(f"input_lengths is {length}, input_ids holds {len(ids)} tokens; they must agree")
    _check_ids("input_ids", ids, limits)
    return ids


def _end_ids(values: Values, limits: Limits) -> frozenset[int]:
    """Return the ending tokens: none for -1, all of the model's for one of the model's, else the given one."""
    end_id = _scalar(values, "end_id", None)
    if end_id is None or end_id in limits.eos_ids:
        return limits.eos_ids
    if end_id == -1:
        return frozenset()
    _check_ids("end_id", [end_id], limits)
    return frozenset({end_id})


def _words(name: str, values: Values, limits: Limits) -> list[list[int]]:
    """Read the two rows of a list of words: all ids one after the other, then where each word ends (-1: no more)."""
    flat = values.get(name, [])
    ids, ends = flat[: len(flat) // 2], [end for end in flat[len(flat) // 2 :] if end >= 0]
    words = [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    if not all(words) or (ends and ends[-1] > len(ids)):
        raise RequestError(f"{name} is damaged: the second row must hold rising ends within the first")
    for word in words:
        _check_ids(name, word, limits)
    return words


def _check_ids(name: str, ids: list[int], limits: Limits) -> None:
    for token in ids:
        if not 0 <= token < limits.vocabulary:
            raise RequestError(f"{name}: {token} is no token; ids are 0 to {limits.vocabulary - 1}")


def _answer_tokens_min(values: Values, answer_tokens_max: int) -> int:
    wanted = int(_scalar(values, "min_tokens", 0))
    if not 0 <= wanted <= answer_tokens_max:
        raise RequestError(f"min_tokens is {wanted}; it must be 0 to {answer_tokens_max} (max_tokens)")
    return wanted


def _sampling(values: Values) -> dict[str, Any]:
    refuse_beams(int(_scalar(values, "beam_width", BEAMS)))
    return {
        **_randomness(values),
        "repetition_penalty": _within(values, "repetition_penalty", 1.0, lowest=0.01, highest=100.0),
        "presence_penalty": _within(values, "presence_penalty", 0.0, lowest=-2.0, highest=2.0),
        "frequency_penalty": _within(values, "frequency_penalty", 0.0, lowest=-2.0, highest=2.0),
    }


def _randomness(values: Values) -> dict[str, Any]:
    """As TensorRT-LLM does it: without runtime_top_k and runtime_top_p the likeliest token is taken."""
    temperature = _within(values, "temperature", 1.0, lowest=0.0, highest=100.0)
    top_k = int(_within(values, "runtime_top_k", 0, lowest=0, highest=1 << 30))
    top_p = _within(values, "runtime_top_p", 0.0, lowest=0.0, highest=1.0)
    if temperature == 0.0 or top_k == 1 or (top_k == 0 and top_p == 0.0):
        return {"temperature": 0.0}
    return {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p or 1.0,
        "seed": _scalar(values, "seed", None),
    }


def _within(values: Values, name: str, default: float, *, lowest: float, highest: float) -> float:
    value: float = _scalar(values, name, default)
    if not lowest <= value <= highest:
        raise RequestError(f"{name} is {value:g}; it must be {lowest:g} to {highest:g}")
    return value
