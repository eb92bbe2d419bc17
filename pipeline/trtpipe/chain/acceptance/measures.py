"""What is measured of a served engine: its KV pool, the ids of known questions, a short load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trtpipe.chain.acceptance.steps import CheckFailed
from trtpipe.core.golden_ids import difference
from trtpipe.engines import vllm_checks
from trtpipe.engines.trtllm.capacity import MIB
from trtpipe.errors import ToolFailed, TrtpipeError
from trtpipe.load import closed_loop, figures
from trtpipe.triton_repo import client, engine_ids, preprocessed, running_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from trtpipe.core.chat import ChatTokenizer
    from trtpipe.engines.trtllm.plan import Plan
    from trtpipe.triton_repo.server import Addresses

QUESTIONS = ("What is the capital of France?", "Write one sentence about rain.", "What is 17 plus 25?")
GOLDEN_TOKENS = 32
# The plan's activations and reserve are estimates; a pool this much smaller means that something else holds memory, or
# that the engine is not the planned one.
SHORT_SHARE = 0.8
SLACK_TOKENS = 8  # a prompt cut at tokens may have some more when it is encoded again
# Words of one token in most vocabularies; a prompt of any length is made of them.
FILLER = " the report says that the parcel is late and that the customer would like to have an answer today"


@dataclass(frozen=True)
class LoadSettings:
    """A short closed loop. ``prompt_tokens``, ``answer_tokens``: of each request; ``note``: what was changed."""

    clients: int
    requests: int
    prompt_tokens: int
    answer_tokens: int
    note: str | None = None

    def within(self, context_tokens: int) -> LoadSettings:
        """Return requests that an engine of this context takes: answers of half of it at most."""
        answer = min(self.answer_tokens, context_tokens // 2)
        prompt = min(self.prompt_tokens, context_tokens - answer - SLACK_TOKENS)
        if (answer, prompt) == (self.answer_tokens, self.prompt_tokens):
            return self
        note = f"prompts of {prompt} and answers of {answer} tokens: the engine's sequences end at {context_tokens}"
        return replace(self, prompt_tokens=prompt, answer_tokens=answer, note=note)


def kv_blocks(plan: Plan, addresses: Addresses) -> dict[str, Any]:
    """Compare the pool with the plan's. Raises CheckFailed where it is far smaller, or does not hold a full sequence.

    ``runtime_reserve_mib_measured``: what the target's `runtime_reserve_mib` would have had to be.
    """
    found = running_facts.kv_blocks(addresses.metrics_url)
    memory, limits, target = plan.memory, plan.limits, plan.target
    assert memory is not None  # noqa: S101 - the plan was legal
    assert limits is not None  # noqa: S101
    pool, tokens = memory.pools[target.kv_dtype], found.blocks * found.block_tokens
    in_use = max(stage.total_bytes for stage in memory.weights) + memory.reserve.activation_bytes
    reserve = memory.gpu_bytes - in_use - tokens * pool.bytes_per_token / target.kv_memory_share
    measured = {
        "planned_blocks": pool.blocks,
        "blocks": found.blocks,
        "blocks_of_planned": round(found.blocks / pool.blocks, 4) if pool.blocks else None,
        "block_tokens": found.block_tokens,
        "tokens": tokens,
        "full_length_sequences": tokens // limits.seq_len,
        "runtime_reserve_mib_planned": memory.reserve.runtime_bytes // MIB,
        "runtime_reserve_mib_measured": round(reserve / MIB),
    }
    faults: list[TrtpipeError] = []
    if found.block_tokens != target.kv_block_tokens:
        what = f"a KV block has {found.block_tokens} tokens, and the target says {target.kv_block_tokens}"
        faults.append(ToolFailed(what, where=addresses.metrics_url, fix="see the server's log"))
    if found.blocks < SHORT_SHARE * pool.blocks:
        what = (
            f"the KV cache has {found.blocks:,} blocks, {measured['blocks_of_planned']:.1%} of {pool.blocks:,} planned"
        )
        fix = "see what else holds the GPUs' memory (nvidia-smi); else plan with the measured runtime_reserve_mib"
        faults.append(ToolFailed(what, where=addresses.metrics_url, fix=fix))
    if tokens < limits.seq_len:
        what = (
            f"the KV cache holds {tokens:,} tokens, less than one sequence of {limits.seq_len:,}: longer requests fail"
        )
        fix = "free the GPUs' memory, raise kv_memory_share, or build for a shorter max_seq_len"
        faults.append(ToolFailed(what, where=addresses.metrics_url, fix=fix))
    if faults:
        raise CheckFailed(measured, faults)
    return measured


def golden_ids(tokenizer: ChatTokenizer, http_url: str, *, kv_reuse: bool) -> dict[str, Any]:
    """Ask known questions for the prompt's ids, twice for the answer's and once for its text.

    Raises CheckFailed where these do not fit together. ``kv_reuse``: then only the later two are computed in the same
    way, because the first fills the KV blocks that they begin with, and may choose another token where two are close.
    """
    answers: list[dict[str, Any]] = []
    faults: list[TrtpipeError] = []
    for question in QUESTIONS:
        prompt = tokenizer.encode_chat([{"role": "user", "content": question}])
        ids, again = (
            engine_ids.answer(
                http_url, prompt, max_tokens=GOLDEN_TOKENS, end_id=tokenizer.end_id, pad_id=tokenizer.pad_id,
            )
            for _ in range(2)
        )  # fmt: skip
        text = client.ask(http_url, [{"role": "user", "content": question}], max_tokens=GOLDEN_TOKENS).text
        own = tokenizer.decode(again)
        same = {"same_with_reuse": ids == again} if kv_reuse else {}
        answers.append({"question": question, "prompt_ids": prompt, "answer_ids": ids, "text": text, **same})
        said = vllm_checks.answer_faults(ids, tokenizer.decode(ids))
        made = preprocessed.ids(http_url, question)
        if parts := difference(prompt, made, tokenizer.bos_id, tokenizer.tokenizer.id_to_token):
            said.append(f"preprocessing makes other ids of the prompt than this model's tokenizer: {parts}")
        if ids != again and not kv_reuse:
            said.append("the same question got other ids the second time")
        if not tokenizer.eos_ids.isdisjoint(ids):
            said.append("the answer goes on behind a token that ends it")
        if text != own:
            said.append(f"the ensemble's text {text!r} is not that of the engine's ids, {own!r}")
        fix = "compare the checkpoint with the model, and see the server's log"
        faults += [ToolFailed(one, where=f"greedy answer to `{question}`", fix=fix) for one in said]
    measured = {"questions": len(QUESTIONS), "answers": answers}
    if faults:
        raise CheckFailed(measured, faults)
    return measured


def load(
    tokenizer: ChatTokenizer, settings: LoadSettings, http_url: str, on_answer: Callable[[int], None]
) -> dict[str, Any]:
    """Run the loop through the ensemble. Each prompt begins otherwise, so that no KV block is reused.

    Raises CheckFailed where a request failed.
    """
    prompts = [_prompt(tokenizer, number, settings.prompt_tokens) for number in range(settings.requests)]

    def ask(connection: client.Client, number: int) -> AbstractContextManager[Iterator[str]]:
        return connection.stream(prompts[number], max_tokens=settings.answer_tokens, min_tokens=settings.answer_tokens)

    with client.Client(http_url, model="ensemble") as connection:
        loop = closed_loop.run(
            partial(ask, connection), clients=settings.clients, requests=settings.requests, on_answer=on_answer
        )
    lengths = [len(tokenizer.encode_chat([{"role": "user", "content": prompt}])) for prompt in prompts]
    measured = {
        "prompts": "made of filler words, each beginning otherwise: nothing is reused",
        "note": settings.note,
        "prompt_tokens_each": round(sum(lengths) / len(lengths), 1),
        "answer_tokens_asked": settings.answer_tokens,
        **figures.of(loop, lambda text: len(tokenizer.encode(text))),
    }
    if measured["failed"]:
        what = f"{measured['failed']} of {settings.requests} requests failed: " + "; ".join(measured["faults"])
        raise CheckFailed(measured, [ToolFailed(what, where=http_url, fix="see the server's log")])
    return measured


def _prompt(tokenizer: ChatTokenizer, number: int, tokens: int) -> str:
    """Return a text of about so many tokens, its turn in the template included."""
    start = f"Request {number}:"
    room = tokens - len(tokenizer.encode_chat([{"role": "user", "content": start}]))
    filler = FILLER * max(1, -(-room // max(len(tokenizer.encode(FILLER)), 1)))
    return start + tokenizer.decode(tokenizer.encode(filler)[: max(room, 0)])
