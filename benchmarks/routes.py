"""The full route against the bare engine: the same prompts, arguments and cores, in turns within one run.

    nice python benchmarks/routes.py --workspace FOLDER [--triton ENVIRONMENT]

The workspace has a promoted release of the local engine. The full route is the ensemble, streamed over HTTP or gRPC
and read by this program's own client; the bare engine is vLLM's ``AsyncLLM`` in a process of its own, which counts ids
and makes no text. Both have the prompts in their cache after a round that does not count, so most work is decoding.
Writes ``benchmarks/results/routes.json``: tokens a second, ratio with a 95 % interval, processor time by process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from processor_time import spent

from trtpipe.chain.served import free_addresses
from trtpipe.client import AsyncClient
from trtpipe.core import environment
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import server as triton

REPOSITORY = Path(__file__).parents[1]
SAMPLE = REPOSITORY / "calibration/prompts/sample.jsonl"
RESULTS = REPOSITORY / "benchmarks/results/routes.json"
CLIENTS = 8
PROMPTS_EACH = 2
PROMPT_TOKENS_MAX = 400
ANSWER_TOKENS = 64
BARE = "bare engine"
RESAMPLES = 10_000

Messages = list[dict[str, str]]


def prompts(tokenizer: ChatTokenizer) -> list[tuple[Messages, list[int]]]:
    """Return the log's first conversations that are short enough, with their ids."""
    documents = map(json.loads, SAMPLE.read_text("utf-8").splitlines())
    rows = [document["messages"] for document in documents if "messages" in document]
    found = [(messages, tokenizer.encode_chat(messages)) for messages in rows]
    return [row for row in found if len(row[1]) <= PROMPT_TOKENS_MAX][: CLIENTS * PROMPTS_EACH]


async def timed(ask: Callable[[Any], Awaitable[None]], asked: list[Any]) -> float:
    """Let each client ask its prompts one after the other; return the seconds until the last has ended."""

    async def client(number: int) -> None:
        for prompt in asked[number::CLIENTS]:
            await ask(prompt)

    started = time.perf_counter()
    await asyncio.gather(*map(client, range(CLIENTS)))
    return time.perf_counter() - started


async def serve_bare(folder: Path, arguments: dict[str, Any]) -> None:
    """Answer each line of prompts (ids) on standard input with a line of seconds; runs in a process of its own."""
    from vllm import AsyncEngineArgs, SamplingParams
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(model=str(folder), **arguments))
    sampling = SamplingParams(
        max_tokens=ANSWER_TOKENS,
        ignore_eos=True,
        temperature=0.0,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )
    asked = 0

    async def ask(ids: list[int]) -> None:
        nonlocal asked
        asked += 1
        tokens = 0
        async for output in llm.generate({"prompt_token_ids": ids}, sampling, str(asked)):
            tokens += len(output.outputs[0].token_ids)
        assert tokens == ANSWER_TOKENS

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps({"seconds": await timed(ask, json.loads(line))}), file=answers, flush=True)
    llm.shutdown()


class Bare:
    """The bare engine in its process."""

    def __init__(self, engine: Path, started_with: dict[str, Any], ids: list[list[int]]) -> None:
        self._line = json.dumps(ids) + "\n"
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--bare", str(engine)],
            env=os.environ | started_with["environment"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: PT018
        self.process.stdin.write(self._line)
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith('{"seconds"'):
                return float(json.loads(line)["seconds"])
        raise SystemExit("the bare engine has ended; see above")

    def close(self) -> None:
        self.process.communicate(timeout=60)  # closes its standard input


def full(url: str, asked: list[Messages]) -> float:
    """Stream all answers through the ensemble; return the seconds until the last has ended."""

    async def run() -> float:
        async with AsyncClient(url, model="ensemble") as client:

            async def ask(messages: Messages) -> None:
                async with client.stream(messages, max_tokens=ANSWER_TOKENS, end_id=-1) as texts:
                    assert "".join([text async for text in texts])

            return await timed(ask, asked)

    return asyncio.run(run())


def count_tokens(url: str, messages: Messages) -> int:
    """Return how many tokens the engine has made for an answer that is asked for as in ``full``."""

    async def run() -> int:
        async with (
            AsyncClient(url, model="ensemble") as client,
            client.pieces(messages, max_tokens=ANSWER_TOKENS, end_id=-1) as pieces,
        ):
            return sum([piece.new_tokens or 0 async for piece in pieces])

    return asyncio.run(run())


def interval(full_s: list[float], bare_s: list[float]) -> list[float]:
    """Return the 95 % interval of the ratio of medians, over rounds drawn anew."""
    chance = random.Random(0)  # noqa: S311 - no secret
    rounds = range(len(full_s))
    found = []
    for _ in range(RESAMPLES):
        drawn = chance.choices(rounds, k=len(full_s))
        found.append(median(bare_s[place] for place in drawn) / median(full_s[place] for place in drawn))
    found.sort()
    return [round(found[int(share * RESAMPLES)], 3) for share in (0.025, 0.975)]


def measure(ways: dict[str, Callable[[], float]], meters: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list]:
    """Take the ways in turns, each round beginning with another one."""
    seconds: dict[str, list[float]] = defaultdict(list)
    names = list(ways)
    for way in ways.values():
        way()
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            with meters[name]():
                seconds[name].append(ways[name]())
            print(f"round {number + 1}: {name} {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    return seconds


def compare(running: triton.Server, engine: Path, rounds: int) -> dict[str, Any]:
    """Measure the routes of a running server and the same engine without it."""
    started_with = json.loads((engine / "engine.json").read_text("utf-8"))
    asked = prompts(ChatTokenizer.load(engine))
    messages, ids = [row[0] for row in asked], [row[1] for row in asked]
    tokens = len(asked) * ANSWER_TOKENS
    addresses = running.addresses
    urls = {"http": addresses.http_url, "grpc": addresses.grpc_url}
    assert count_tokens(urls["http"], messages[0]) == ANSWER_TOKENS
    bare = Bare(engine, started_with, ids)
    processor: dict[str, dict[str, float]] = defaultdict(dict)
    ways = {BARE: bare} | {name: lambda url=url: full(url, messages) for name, url in urls.items()}
    roots = {BARE: bare.process.pid} | dict.fromkeys(urls, running.supervisor.pid)
    meters = {name: lambda name=name: spent(roots[name], processor[name]) for name in ways}
    try:
        seconds = measure(ways, meters, rounds)
    finally:
        bare.close()
    return {
        "clients": CLIENTS,
        "requests_a_round": len(asked),
        "answer_tokens_a_round": tokens,
        "prompt_tokens_median": median(map(len, ids)),
        "rounds": rounds,
        "median_tokens_per_s": {name: round(tokens / median(each), 1) for name, each in seconds.items()},
        "ratio_to_bare_engine": {
            name: {
                "of_medians": round(median(seconds[BARE]) / median(each), 3),
                "interval_95": interval(each, seconds[BARE]),
            }
            for name, each in seconds.items()
            if name != BARE
        },
        "processor_ms_per_token": {
            name: {role: round(1000 * each / tokens / rounds, 3) for role, each in parts.items()}
            for name, parts in processor.items()
        },
        "seconds": {name: [round(each, 3) for each in all_] for name, all_ in seconds.items()},
        "engine": started_with["resolved"],
        "environment": environment.describe(),
        "load_average_at_the_end": [round(each, 1) for each in os.getloadavg()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument(
        "--triton", type=Path, default=REPOSITORY / ".venv-triton", help="environment that holds Triton"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        started_with = json.loads((options.bare / "engine.json").read_text("utf-8"))
        asyncio.run(serve_bare(options.bare, started_with["arguments"]))
        return
    store = Store(options.workspace)
    release = require_current(store)
    with tempfile.TemporaryDirectory() as folder:
        addresses, log = free_addresses(), Path(folder) / "triton.log"
        with triton.running(
            release.path, options.triton, addresses, state=store.state, log=log, ready_timeout_s=600
        ) as running:
            result = compare(running, release.path / "engine", options.rounds)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
