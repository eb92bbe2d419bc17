"""vLLM behind Triton: one thread with an event loop owns the engine, all response senders and all metrics.

Triton's metrics crash the server when several threads touch them, so everything that sends or counts runs on that
loop; other threads only hand work to it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import torch.utils.dlpack
import triton_python_backend_utils as pb_utils
from answer import Answer
from chat import ChatTokenizer
from engine_metrics import EngineMetrics
from facts import Facts
from generation import Generation, Limits
from pace import Pace
from parameters import RequestError
from reply import Reply
from request_name import in_log
from sampling import sampling_of, texts_of
from token_bytes import TokenBytes
from vllm import AsyncEngineArgs
from vllm.config import StructuredOutputsConfig
from vllm.exceptions import VLLMClientError
from vllm.v1.engine.async_llm import AsyncLLM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable
    from pathlib import Path

# As TensorRT-LLM's cancellation_check_period_ms and stats_check_period_ms.
WATCH_PERIOD_S = 0.1
DRAIN_S = 10.0
# TensorRT-LLM's own. Left to vLLM, each request would choose, but an engine keeps the backend of its first one.
GUIDED_BY = "xgrammar"


class Engine:
    """Serves generations until it is shut down or vLLM dies; then every request gets an error."""

    def __init__(
        self, folder: Path, arguments: dict[str, Any], model: str, version: str, *, queue_requests_max: int
    ) -> None:
        """Load the engine. ``queue_requests_max``: most that may wait for a place in a step; 0 for no limit.

        Raises TritonModelException with vLLM's reason.
        """
        self._model = model
        self._queue_requests_max = queue_requests_max
        # A model that may put white space between any two tokens of JSON can write nothing else for ever.
        guided = StructuredOutputsConfig(backend=GUIDED_BY, disable_any_whitespace=True)
        self._arguments = AsyncEngineArgs(model=str(folder), structured_outputs_config=guided, **arguments)
        self._tokenizer = ChatTokenizer.load(folder)
        self._table = TokenBytes(self._tokenizer.tokenizer)
        self._metrics = EngineMetrics(model, version)
        self._active: dict[asyncio.Task[None], Reply] = {}
        self._numbers = itertools.count()
        self._lost = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()
        try:
            self._on_loop(self._load()).result()
        except Exception as fault:
            raise pb_utils.TritonModelException(f"vLLM does not load {folder}: {fault}") from fault

    @staticmethod
    def to_list(tensor: Any) -> list[Any]:
        values: list[Any] = torch.utils.dlpack.from_dlpack(tensor.to_dlpack()).flatten().tolist()
        return values

    @staticmethod
    def reply_to(request: Any) -> Reply:
        return Reply(request.get_response_sender(), request.request_id())

    def submit(self, reply: Reply, generation: Generation) -> None:
        self._loop.call_soon_threadsafe(self._start, reply, generation)

    def stop(self, reply: Reply) -> None:
        """End the requests that have the id of this one; none may be left, because answers end by themselves too."""
        self._loop.call_soon_threadsafe(self._stop, reply)

    def refuse(self, reply: Reply, reason: str) -> None:
        self._loop.call_soon_threadsafe(self._refuse, reply, reason, pb_utils.TritonError.INVALID_ARG)

    def shutdown(self) -> None:
        self._on_loop(self._unload()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        # Triton's senders and metrics crash when they are freed as late as Python itself ends.
        gc.collect()
        # Else Python, as it ends, goes through all of torch and vLLM several times more: seconds of every stop.
        gc.freeze()

    def _on_loop(self, work: Awaitable[None]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)  # type: ignore[arg-type]

    async def _load(self) -> None:
        self._llm = AsyncLLM.from_engine_args(self._arguments, stat_loggers=[self._metrics.logger])
        config = self._llm.vllm_config.model_config
        self.limits = Limits(
            tokens=config.max_model_len, vocabulary=config.get_vocab_size(), eos_ids=self._tokenizer.eos_ids
        )
        in_a_step = self._llm.vllm_config.scheduler_config.max_num_seqs
        self._active_max = in_a_step + self._queue_requests_max if self._queue_requests_max else sys.maxsize
        self._watch_task = self._loop.create_task(self._watch())

    async def _unload(self) -> None:
        self._watch_task.cancel()
        for task in self._active:
            task.cancel()
        if self._active:
            await asyncio.wait(self._active, timeout=DRAIN_S)
        self._llm.shutdown()
        self._metrics.close()

    def _start(self, reply: Reply, generation: Generation) -> None:
        if len(self._active) >= self._active_max:
            self._refuse(
                reply,
                f"{len(self._active)} requests are being served or wait; come back later",
                pb_utils.TritonError.UNAVAILABLE,
            )
            return
        task = self._loop.create_task(self._serve(reply, generation))
        self._active[task] = reply
        task.add_done_callback(self._forget)
        self._metrics.active(len(self._active))

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._active[task]
        self._metrics.active(len(self._active))

    def _stop(self, reply: Reply) -> None:
        for task, other in self._active.items():
            if other.request_id == reply.request_id:
                _break_off(task, other)
        reply.finish([], {})

    def _refuse(self, reply: Reply, reason: str, code: int) -> None:
        self._metrics.ended("refused")
        reply.fail(reason, code)
        # Not why: the reason may hold what the client has written.
        pb_utils.Logger.log_info(f"{in_log(reply.request_id)} refused")

    async def _serve(self, reply: Reply, generation: Generation) -> None:
        """Answer one request. Whatever happens, the last response is marked as final."""
        pace = Pace(reply.arrived_s)
        try:
            await self._generate(reply, generation, pace)
            outcome = "answered"
        except asyncio.CancelledError:
            if reply.unwanted:
                reply.break_off()
            else:
                reply.fail("the engine is being unloaded", pb_utils.TritonError.UNAVAILABLE)
            outcome = "cancelled"
        except (RequestError, VLLMClientError) as fault:
            reply.fail(str(fault), pb_utils.TritonError.INVALID_ARG)
            outcome = "refused"
        except Exception as fault:
            self._check_health()
            # vLLM wraps what went wrong into an exception without a text.
            told = str(fault.__cause__ or fault) or repr(fault)
            reason = "the engine has died; load the model again" if self._lost else told
            pb_utils.Logger.log_error(f"{in_log(reply.request_id)} failed: {reason}")
            reply.fail(reason, pb_utils.TritonError.UNAVAILABLE if self._lost else pb_utils.TritonError.INTERNAL)
            outcome = "failed"
        self._metrics.ended(outcome)
        pb_utils.Logger.log_info(
            f"{in_log(reply.request_id)} {outcome}: {len(generation.prompt_ids)} tokens in, {pace.tokens} out,"
            f" {pace.elapsed_ms:.0f} ms"
        )

    async def _generate(self, reply: Reply, generation: Generation, pace: Pace) -> None:
        answer = Answer(
            self._table,
            texts_of("stop_words_list", generation.stop_words, self._table),
            generation.answer_tokens_min,
            opens_text=self._tokenizer.has_template,
        )
        collected: list[int] = []
        facts = Facts(generation)
        async with aclosing(self._outputs(reply, generation, pace)) as outputs:
            async for output in outputs:
                new, log_probs = _new(output.outputs[0], generation.end_ids)
                collected += answer.add(new)
                facts.add(new, log_probs)
                if answer.stopped:
                    break
                if generation.streaming and collected and not output.finished:
                    reply.send(collected, facts.take())
                    collected = []
        reply.finish([*collected, *answer.finish()], facts.take())

    async def _outputs(self, reply: Reply, generation: Generation, pace: Pace) -> AsyncGenerator[Any, None]:
        """Yield what vLLM makes of a request, and count it. Closing it aborts the request in the engine."""
        prompt = {"prompt_token_ids": generation.prompt_ids}
        stream = self._llm.generate(prompt, sampling_of(generation, self._table), self._own_id(reply))
        try:
            async with aclosing(stream):
                async for output in stream:
                    _require_sound(output.outputs[0])
                    if pace.add(len(output.outputs[0].token_ids)):
                        queue_s = output.metrics.scheduled_ts - output.metrics.queued_ts
                        self._metrics.begun(first_token_s=pace.first_token_s, queue_s=queue_s)
                    yield output
        finally:
            if pace.tokens:
                self._metrics.written(
                    prompt_tokens=len(generation.prompt_ids), answer_tokens=pace.tokens, token_s=pace.token_s
                )

    def _own_id(self, reply: Reply) -> str:
        """Return an id for vLLM and its log: the client's, made unique, because clients may choose equal ones."""
        number = str(next(self._numbers))
        return f"{reply.request_id}-{number}" if reply.request_id else number

    async def _watch(self) -> None:
        """Pass cancellations on to the engine, and notice its death also when nobody asks it anything."""
        while not self._lost:
            await asyncio.sleep(WATCH_PERIOD_S)
            self._pass_on_cancellations()
            self._metrics.publish()
            self._check_health()

    def _pass_on_cancellations(self) -> None:
        for task, reply in self._active.items():
            if reply.is_cancelled():
                _break_off(task, reply)

    def _check_health(self) -> None:
        """Take the model out of service once the engine is dead: nothing revives it, and ready must mean ready."""
        if self._llm.errored and not self._lost:
            self._lost = True
            pb_utils.Logger.log_error(f"the engine has died with {len(self._active)} requests; unloading the model")
            threading.Thread(target=pb_utils.unload_model, args=(self._model,), daemon=True).start()


def _require_sound(output: Any) -> None:
    """Raise RuntimeError where vLLM gave a request up: its last output looks like an answer's end otherwise."""
    if output.finish_reason in ("error", "abort"):
        raise RuntimeError(f"the engine gave the request up ({output.finish_reason}); its log says why")


def _new(output: Any, end_ids: frozenset[int]) -> tuple[list[int], list[float]]:
    """Return the new ids without the ending one, and their log probabilities if there are any."""
    places = [place for place, token in enumerate(output.token_ids) if token not in end_ids]
    ids = [output.token_ids[place] for place in places]
    found = output.logprobs
    return ids, [found[place][token].logprob for place, token in zip(places, ids, strict=True)] if found else []


def _break_off(task: asyncio.Task[None], reply: Reply) -> None:
    reply.unwanted = True
    task.cancel()
