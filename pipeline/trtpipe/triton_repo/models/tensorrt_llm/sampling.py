"""What vLLM is told of one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parameters import RequestError
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

if TYPE_CHECKING:
    from generation import Generation
    from token_bytes import TokenBytes


def sampling_of(generation: Generation, table: TokenBytes) -> SamplingParams:
    """Raises RequestError for a bad word without text."""
    return SamplingParams(
        max_tokens=generation.answer_tokens_max,
        min_tokens=generation.answer_tokens_min,
        # The ending tokens are the request's own; vLLM would add the model's to them.
        ignore_eos=True,
        stop_token_ids=sorted(generation.end_ids),
        # vLLM makes ids of them again, in the middle of a text and after a space.
        bad_words=texts_of("bad_words_list", generation.bad_words, table),
        detokenize=False,
        # 0: of the chosen tokens alone, by the model's own distribution, before temperature and penalties.
        logprobs=0 if generation.log_probs else None,
        structured_outputs=StructuredOutputsParams(**generation.guide) if generation.guide else None,
        output_kind=RequestOutputKind.DELTA,
        **generation.sampling,
    )


def texts_of(name: str, words: list[list[int]], table: TokenBytes) -> list[str]:
    """Return words as they read. Raises RequestError for one without text, which every answer would hold."""
    texts = [table.written_text(word) for word in words]
    if "" in texts:
        word = words[texts.index("")]
        raise RequestError(f"{name}: the tokenizer has no text for {word}; a token that ends answers is an end_id")
    return texts
