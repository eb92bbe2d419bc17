"""Ask a served release on all routes at once, cancel on each, close sockets; show that nothing is lost.

    python tests/soak/mixed.py [--workspace tests/.workspace] [--requests 500] [--out benchmarks/results/mixed.json]

The workspace is one in which `trtpipe run` has promoted a release; `pytest -m e2e` leaves one. A Triton and a front of
its own are started. Ten minutes on two quiet cores. The figures go to standard output as JSON; the exit status is 1
where a request is lost, texts differ or the server does not stay alive.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mixed_routes import FRONT_MODEL, PROMPTS, ROUTES, Asker, Got, Route, asker, send_by_hand
from served_front import listening
from served_metrics import Metrics
from trtpipe.chain import fronted
from trtpipe.chain.served import free_addresses
from trtpipe.config.load import workspace as read_workspace
from trtpipe.core import environment
from trtpipe.core.store import Store
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo import server as triton
from workspaces import REPOSITORY

KEY = "a-key-for-this-run"
TIME_LIMIT_S = 1800.0
ANSWER_TOKENS = (2, 10)  # shortest and longest of the requests at once
EQUAL_TOKENS = 12
CANCELLED_TOKENS = 80  # of which a cancelled answer must not come to the last
SOCKETS = 20
FREED_WITHIN_S = 300.0
ENDS = ("answered", "cancelled", "failed")


def in_flight(metrics: Metrics) -> float:
    return metrics("nv_trt_llm_request_metrics", "active")


def used_blocks(metrics: Metrics) -> float:
    return metrics("nv_trt_llm_kv_cache_block_metrics", "used")


def outcomes(metrics: Metrics) -> Counter[str]:
    return Counter({name: int(metrics("trtpipe_request_outcomes", name)) for name in ENDS})


def settle(metrics: Metrics) -> None:
    metrics.until(lambda: in_flight(metrics) == 0, limit_s=FREED_WITHIN_S)


async def at_once(asking: Asker, count: int) -> dict[str, Any]:
    """Send ``count`` requests in the same moment; each answer must have exactly the tokens asked for."""
    least, most = ANSWER_TOKENS
    asked = [
        (ROUTES[number % len(ROUTES)], PROMPTS[number % len(PROMPTS)], least + number * 7 % (most - least + 1))
        for number in range(count)
    ]
    started, ended_s = time.monotonic(), []

    async def one(route: Route, prompt: str, tokens: int) -> Got:
        got = await asking.ask(route, prompt, tokens, exactly=True, time_limit_s=TIME_LIMIT_S)
        ended_s.append(time.monotonic() - started)
        return got

    found = await asyncio.gather(*(one(*request) for request in asked), return_exceptions=True)
    seconds = time.monotonic() - started
    by_route: dict[str, Counter[str]] = defaultdict(Counter)
    faults: Counter[str] = Counter()
    for (route, _, tokens), got in zip(asked, found, strict=True):
        tally = by_route[str(route)]
        tally["asked"] += 1
        if isinstance(got, BaseException):
            tally["failed"] += 1
            faults[f"{type(got).__name__}: {got}"[:200]] += 1
        else:
            tally["whole" if got.tokens == tokens and got.text else "short"] += 1
    whole = sum(tally["whole"] for tally in by_route.values())
    return {
        "requests": count,
        "answered_whole": whole,
        "lost_or_short": count - whole,
        "tokens": sum(tokens for _, _, tokens in asked),
        "seconds": round(seconds, 1),
        "seconds_to_half_of_the_answers": round(median(ended_s), 1) if ended_s else None,
        "by_route": {name: dict(tally) for name, tally in sorted(by_route.items())},
        "faults": dict(faults),
    }


async def equal_texts(asking: Asker, metrics: Metrics) -> dict[str, Any]:
    """Ask one after the other, each prompt first once to fill the cache."""
    differing = {}
    for prompt in PROMPTS:
        found: dict[str, list[str]] = defaultdict(list)
        for place, route in enumerate((ROUTES[0], *ROUTES)):
            settle(metrics)
            got = await asking.ask(route, prompt, EQUAL_TOKENS, exactly=False, time_limit_s=TIME_LIMIT_S)
            if place:
                found[f"{got.tokens} tokens: {got.text}"].append(str(route))
        if len(found) > 1:
            differing[prompt] = found
    return {
        "prompts": len(PROMPTS),
        "routes": len(ROUTES),
        "answer_tokens_max": EQUAL_TOKENS,
        "prompts_with_one_text_on_all_routes": len(PROMPTS) - len(differing),
        "differing": differing,
    }


async def cancelled(asking: Asker, metrics: Metrics) -> dict[str, Any]:
    """Leave an answer on each route once the engine works on it; measure when its KV blocks are free."""
    return {str(route): await _cancelled(asking, metrics, route) for route in ROUTES}


async def _cancelled(asking: Asker, metrics: Metrics, route: Route) -> dict[str, Any]:
    settle(metrics)
    before = outcomes(metrics)
    task = asyncio.ensure_future(
        asking.ask(route, PROMPTS[0], CANCELLED_TOKENS, exactly=True, time_limit_s=TIME_LIMIT_S)
    )
    await _until(lambda: used_blocks(metrics) > 0)
    await asyncio.sleep(0.5)
    task.cancel()
    left = time.monotonic()
    await asyncio.gather(task, return_exceptions=True)
    await _until(lambda: in_flight(metrics) == 0 and used_blocks(metrics) == 0)
    freed_s = time.monotonic() - left
    await asyncio.to_thread(metrics.until_free, FREED_WITHIN_S)
    (outcome,) = (outcomes(metrics) - before).elements()
    return {"engine": outcome, "blocks_free_after_s": round(freed_s, 2)}


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FREED_WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("not in time")
        await asyncio.sleep(0.05)


def closed_sockets(metrics: Metrics, url: str) -> dict[str, Any]:
    """Close sockets within answers of both models, unary and streamed, one after the other without waiting."""
    settle(metrics)
    before = outcomes(metrics)
    ways = [(model, stream) for model in exchange.MODELS for stream in (False, True)]
    for number in range(SOCKETS):
        model, stream = ways[number % len(ways)]
        with send_by_hand(url, model, PROMPTS[0], CANCELLED_TOKENS, stream=stream):
            reached = before.total() + number + 1
            metrics.until(lambda reached=reached: outcomes(metrics).total() + in_flight(metrics) >= reached)
    started = time.monotonic()
    settle(metrics)
    ended_s = time.monotonic() - started
    metrics.until_free(FREED_WITHIN_S)
    return {
        "sockets": SOCKETS,
        "engine": dict(outcomes(metrics) - before),
        "all_ended_after_s": round(ended_s, 1),
        "used_blocks_after": used_blocks(metrics),
        "answers_afterwards": bool(client.ask(url, "Hello", max_tokens=4).text),
    }


async def run(running: triton.Server, front_url: str, count: int) -> dict[str, Any]:
    metrics = Metrics(running)
    phases: dict[str, Callable[[Asker], Awaitable[dict[str, Any]]]] = {
        "at_once": lambda asking: at_once(asking, count),
        "closed_sockets": lambda _: asyncio.to_thread(closed_sockets, metrics, running.addresses.http_url),
        "equal_texts": lambda asking: equal_texts(asking, metrics),
        "cancelled": lambda asking: cancelled(asking, metrics),
    }
    found = {}
    async with asker(running, front_url, KEY) as asking:
        for name, phase in phases.items():
            found[name] = await phase(asking)
            print(json.dumps({name: found[name]}, ensure_ascii=False), file=sys.stderr, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, default=REPOSITORY / "tests/.workspace")
    parser.add_argument(
        "--triton", type=Path, default=REPOSITORY / ".venv-triton", help="environment that holds Triton"
    )
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--out", type=Path, help="write the figures there too")
    options = parser.parse_args()
    store = Store(options.workspace)
    release = require_current(store)
    space = read_workspace(options.workspace / "trtpipe.yaml")
    with tempfile.TemporaryDirectory() as folder:
        log, addresses = Path(folder) / "triton.log", free_addresses()
        with triton.running(
            release.path, options.triton, addresses, state=store.state, log=log, ready_timeout_s=600
        ) as running:
            served = fronted.served(space, release, addresses.http_url, KEY)
            limits = replace(served.limits, requests_in_flight=options.requests, request_s=TIME_LIMIT_S)
            with listening(replace(served, model=FRONT_MODEL, limits=limits), Path(folder) / "front.log") as front_url:
                found = asyncio.run(run(running, front_url, options.requests))
            found["server_ended_by_itself"] = running.supervisor.poll() is not None
    engine = json.loads((release.path / "engine" / "engine.json").read_text("utf-8"))
    load = [round(each, 1) for each in os.getloadavg()]
    found |= {"engine": engine["resolved"], "environment": environment.describe(), "load_average_at_the_end": load}
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    good = (
        found["at_once"]["lost_or_short"] == 0
        and not found["equal_texts"]["differing"]
        and found["closed_sockets"]["answers_afterwards"]
        and not found["server_ended_by_itself"]
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
