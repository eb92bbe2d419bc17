"""STAND-IN for `tensorrt_llm.bindings.executor`, for tests: it loads no engine; its logits are a Hugging Face model's.

What is upstream's (NVIDIA/TensorRT-LLM): the names and keywords (cpp/tensorrt_llm/nanobind/executor/executor.cpp,
executorConfig.cpp, request.cpp); that the executor wants as many processes as the engine has ranks, each with its file,
and that rank 0 alone takes requests (docs/source/advanced/executor.md, leader mode); that without `replicate` the first
tensor-parallel rank alone calls the logits post-processor, with all requests of a step, before a token is chosen
(cpp/tensorrt_llm/batch_manager/logitsPostProcessor.cpp, trtGptModelInflightBatching.cpp); that logits are [1, beams,
vocabulary] (examples/bindings/executor/example_logits_processor.py), the vocabulary padded to a multiple of the ranks
(cpp/include/tensorrt_llm/runtime/modelConfig.h); that a request with more tokens than max_seq_len gets an error.

Unlike upstream, the padding holds the highest logits, though it is never chosen; and the requests of a step come in an
order that is not theirs.

Environment: STANDIN_MODEL (the Hugging Face model's folder), and what goes wrong: STANDIN_DAMAGE (of the logits, the
standard deviation), STANDIN_FORGETS (the step in which a request's token is not the forced one), STANDIN_HOLDER (a
port: what listens there holds the GPUs' memory).
"""

from __future__ import annotations

import datetime
import json
import os
import socket
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any

RANK, SIZE = (int(os.environ.get(f"OMPI_COMM_WORLD_{name}", default)) for name, default in (("RANK", 0), ("SIZE", 1)))
PADDING_LOGIT = 1000.0

ModelType = Enum("ModelType", ["DECODER_ONLY"])
CommunicationType = Enum("CommunicationType", ["MPI"])
CommunicationMode = Enum("CommunicationMode", ["LEADER"])


@dataclass
class KvCacheConfig:
    enable_block_reuse: bool = True
    free_gpu_memory_fraction: float | None = None


@dataclass
class ParallelConfig:
    communication_type: CommunicationType
    communication_mode: CommunicationMode


@dataclass
class LogitsPostProcessorConfig:
    processor_batched: Any = None
    replicate: bool = True


@dataclass
class ExecutorConfig:
    max_beam_width: int = 1
    kv_cache_config: KvCacheConfig = field(default_factory=KvCacheConfig)
    enable_chunked_context: bool = False
    parallel_config: ParallelConfig | None = None
    logits_post_processor_config: LogitsPostProcessorConfig | None = None


@dataclass
class SamplingConfig:
    beam_width: int = 1
    top_k: int | None = None


@dataclass
class Request:
    input_token_ids: list[int]
    max_tokens: int
    sampling_config: SamplingConfig
    client_id: int
    logits_post_processor_name: str
    BATCHED_POST_PROCESSOR_NAME = "batched"


@dataclass
class Result:
    is_final: bool


@dataclass
class Response:
    request_id: int
    error_msg: str = ""
    result: Result | None = None

    def has_error(self) -> bool:
        return bool(self.error_msg)


class Executor:
    def __init__(self, model_path: Path, model_type: ModelType, executor_config: ExecutorConfig) -> None:
        if "STANDIN_HOLDER" in os.environ:
            with socket.socket() as holder:
                if holder.connect_ex(("127.0.0.1", int(os.environ["STANDIN_HOLDER"]))) == 0:
                    raise RuntimeError("CUDA out of memory")
        config = json.loads((model_path / "config.json").read_text())
        mapping = config["pretrained_config"]["mapping"]
        if mapping["tp_size"] * mapping["pp_size"] != SIZE or not (model_path / f"rank{RANK}.engine").is_file():
            raise RuntimeError(f"MPI size {SIZE} is not the engine's, or rank{RANK}.engine is not there")
        self.ranks, self.max_seq_len = SIZE, config["build_config"]["max_seq_len"]
        post = executor_config.logits_post_processor_config
        assert post is not None
        assert not post.replicate
        self.post_processor = post.processor_batched
        self.numbers = count(7)
        self.waiting: dict[int, Request] = {}

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def can_enqueue_requests(self) -> bool:
        return RANK == 0

    def enqueue_requests(self, requests: list[Request]) -> list[int]:
        numbered = {next(self.numbers): request for request in requests}
        self.waiting |= numbered
        return list(numbered)

    def await_responses(self, timeout: datetime.timedelta) -> list[Response]:
        asked, self.waiting = self.waiting, {}
        return run(self, asked)


def run(executor: Executor, asked: dict[int, Request]) -> list[Response]:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(os.environ["STANDIN_MODEL"], dtype="auto").eval()
    noise = torch.Generator().manual_seed(0)
    damage, forgets = (float(os.environ.get(f"STANDIN_{name}", "-1")) for name in ("DAMAGE", "FORGETS"))
    refused = {
        number: f"{len(request.input_token_ids)} + {request.max_tokens} tokens exceed max_seq_len"
        for number, request in asked.items()
        if len(request.input_token_ids) + request.max_tokens > executor.max_seq_len
    }
    active = {number: list(request.input_token_ids) for number, request in asked.items() if number not in refused}
    caches: dict[int, Any] = dict.fromkeys(active)
    for step in count():
        active = {n: ids for n, ids in active.items() if len(ids) - len(asked[n].input_token_ids) < asked[n].max_tokens}
        if not active:
            break
        order, logits = list(reversed(active)), []
        for number in order:
            ids = active[number]
            with torch.inference_mode():
                found = model(torch.tensor([ids if caches[number] is None else ids[-1:]]),
                              past_key_values=caches[number], use_cache=True)  # fmt: skip
            caches[number], last = found.past_key_values, found.logits[:, -1:].float().clone()
            if damage > 0:
                last += damage * torch.randn(last.shape, generator=noise)
            padding = -last.shape[-1] % executor.ranks or executor.ranks
            logits.append(torch.nn.functional.pad(last, (0, padding), value=PADDING_LOGIT))
        stream, clients = 0, [asked[number].client_id for number in order]
        executor.post_processor(order, logits, [[active[number]] for number in order], stream, clients)
        for number, values in zip(order, logits, strict=True):
            real = values[..., : model.config.vocab_size]
            active[number].append(0 if step == forgets else int(real.argmax()))
    return [
        Response(number, refused[number]) if number in refused else Response(number, result=Result(is_final=True))
        for number in asked
    ]
