"""What is shown and what alarms, as data: expressions in Prometheus's language over ``metric_families``.

Names that upstream has hold for both kinds of engine; those that begin with ``trtpipe_`` exist on the local one only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtpipe.triton_repo import metric_families as families
from trtpipe.triton_repo.metric_families import Family

Unit = Literal["short", "s", "percentunit", "reqps", "tokens/s", "tokens", "blocks"]
# What the engine model is called in Triton, on both kinds of engine.
ENGINE = 'model="tensorrt_llm"'
QUANTILES = {"median": 0.5, "95 of 100": 0.95, "99 of 100": 0.99}
# Where a first alarm goes off before anybody has set limits of their own: longer than readers wait, slower than they
# read (5 tokens a second), nearly no block left.
FIRST_TOKEN_S = 5.0
TOKEN_S = 0.2
BLOCKS_SHARE = 0.95


@dataclass(frozen=True)
class Panel:
    """One chart. ``lines``: what each is called -> its expression; ``{{label}}`` in a name is the label's value."""

    title: str
    meaning: str
    unit: Unit
    lines: dict[str, str]


@dataclass(frozen=True)
class Alert:
    """``lasting``: how long ``when`` must hold, in Prometheus's words. ``fix``: what to do."""

    name: str
    severity: Literal["critical", "warning"]
    when: str
    lasting: str
    what: str
    fix: str


def _of(family: Family, value: str = "", *, suffix: str = "") -> str:
    """Select one metric of a family on every engine that is scraped."""
    matchers = [ENGINE, f'{family.label}="{value}"'] if value else [ENGINE]
    return f"{family.name}{suffix}{{{', '.join(matchers)}}}"


def _rate(family: Family, value: str = "", *, suffix: str = "") -> str:
    return f"sum(rate({_of(family, value, suffix=suffix)}[5m]))"


def _quantile(family: Family, quantile: float) -> str:
    return f"histogram_quantile({quantile}, sum by (le) (rate({_of(family, suffix='_bucket')}[5m])))"


def _quantiles(family: Family) -> dict[str, str]:
    return {name: _quantile(family, quantile) for name, quantile in QUANTILES.items()}


def _models(metric: str) -> str:
    return f"sum by (model) (rate({metric}[5m]))"


SUCCESSES, FAILURES, _, QUEUED_US = families.TRITON

PANELS = (
    Panel(
        "Requests in the engine",
        "Running in the batch and waiting for a place in it, against the most that run at once.",
        "short",
        {
            "running": f"sum({_of(families.REQUESTS, 'scheduled')})",
            "waiting": f"sum({_of(families.REQUESTS, 'waiting')})",
            "most at once": f"sum({_of(families.REQUESTS, 'max')})",
        },
    ),
    Panel(
        "KV cache in use",
        "Share of the blocks that running requests hold. Near 1, requests wait, or lose their blocks and start again.",
        "percentunit",
        {"{{instance}}": _of(families.BLOCKS, "fraction")},
    ),
    Panel(
        "KV cache blocks",
        "Reused: found in the cache instead of computed. On TensorRT-LLM it stays 0 where paged context FMHA is off.",
        "blocks",
        {
            "used": f"sum({_of(families.BLOCKS, 'used')})",
            "free": f"sum({_of(families.BLOCKS, 'free')})",
            "reused in 5 minutes": f"sum(delta({_of(families.BLOCKS, 'reused')}[5m]))",
        },
    ),
    Panel(
        "Time to the first token",
        "From the arrival at the engine model. Local engine only.",
        "s",
        _quantiles(families.FIRST_TOKEN_S),
    ),
    Panel(
        "Time per output token",
        "Mean of each request that ended, without its first token. Local engine only.",
        "s",
        _quantiles(families.TOKEN_S),
    ),
    Panel(
        "Time in the engine's queue",
        "Until a request gets a place in the batch. Local engine only.",
        "s",
        _quantiles(families.QUEUE_S),
    ),
    Panel(
        "Tokens a second",
        "Prompt tokens read (with those found in the cache), and tokens generated. Local engine only.",
        "tokens/s",
        {"prompt": _rate(families.TOKENS, "prompt"), "answer": _rate(families.TOKENS, "answer")},
    ),
    Panel(
        "Prompt tokens found in the cache",
        "Share of those looked up. Local engine only.",
        "percentunit",
        {"share": f"{_rate(families.PREFIX, 'hit')} / {_rate(families.PREFIX, 'queried')}"},
    ),
    Panel(
        "Lengths",
        "Half of the requests that ended were shorter.",
        "tokens",
        {
            "prompt": _quantile(families.PROMPT_LENGTHS, 0.5),
            "answer": _quantile(families.ANSWER_LENGTHS, 0.5),
        },
    ),
    Panel(
        "How requests end",
        "Refused: the request is at fault. Failed: the engine is. Local engine only.",
        "reqps",
        {outcome: _rate(families.OUTCOMES, outcome) for outcome in families.OUTCOMES.values}
        | {"lost its blocks": _rate(families.PREEMPTIONS)},
    ),
    Panel(
        "Requests by model",
        "Counted by Triton: each request to the ensemble is one to each of its steps too.",
        "reqps",
        {"{{model}}": _models(SUCCESSES), "{{model}} failed": _models(FAILURES)},
    ),
    Panel(
        "Waiting before a model",
        "Mean time in Triton's own queue, which is before the engine's.",
        "s",
        {"{{model}}": f"{_models(QUEUED_US)} / {_models(SUCCESSES)} / 1e6"},
    ),
)

ALERTS = (
    Alert(
        "EngineNotLoaded",
        "critical",
        f"absent({_of(families.REQUESTS, 'max')})",
        "1m",
        "No engine reports: it is not loaded, it has died, or the server does not run",
        "See the server's log. An engine that has died is unloaded; load the model `ensemble` again, or restart",
    ),
    Alert(
        "EngineStands",
        "critical",
        f"{_of(families.REQUESTS, 'scheduled')} > 0"
        f" and ignoring (request_type, general_type) changes({_of(families.GENERAL, 'iteration_counter')}[2m]) == 0",
        "1m",
        "Requests are running, and the engine has not made a step for two minutes",
        "See the server's log; restart the server",
    ),
    Alert(
        "RequestsFail",
        "critical",
        f"sum by (instance) (increase({_of(families.OUTCOMES, 'failed')}[5m])) > 0",
        "0m",
        "The engine has failed to answer {{ $value | humanize }} requests within five minutes",
        "The server's log has the reason beside the id of each request",
    ),
    Alert(
        "RequestsWait",
        "warning",
        f"min_over_time({_of(families.REQUESTS, 'waiting')}[5m]) > 0",
        "5m",
        "For ten minutes there has always been a request without a place in the batch",
        "More load than one engine takes: raise max_num_seqs (max_batch_size of TensorRT-LLM) of the target if KV"
        " blocks are free, else add engines",
    ),
    Alert(
        "KvCacheFull",
        "warning",
        f"{_of(families.BLOCKS, 'fraction')} > {BLOCKS_SHARE}",
        "5m",
        "{{ $value | humanizePercentage }} of the KV cache's blocks are held by running requests",
        "Give the KV cache more memory in the target, allow fewer requests at once, or shorter ones",
    ),
    Alert(
        "RequestsLoseTheirBlocks",
        "warning",
        f"sum by (instance) (increase({_of(families.PREEMPTIONS)}[10m])) > 0",
        "0m",
        "{{ $value | humanize }} requests have lost their KV blocks within ten minutes and were computed anew",
        "Give the KV cache more memory in the target, or allow fewer requests at once",
    ),
    Alert(
        "FirstTokenLate",
        "warning",
        f"{_quantile(families.FIRST_TOKEN_S, 0.95)} > {FIRST_TOKEN_S:g}",
        "5m",
        "5 of 100 requests wait longer than {{ $value | humanizeDuration }} for their first token",
        "See which it is: the queue (more engines), long prompts, or a busy machine",
    ),
    Alert(
        "TokensSlow",
        "warning",
        f"{_quantile(families.TOKEN_S, 0.95)} > {TOKEN_S:g}",
        "5m",
        "5 of 100 requests get their tokens slower than one in {{ $value | humanizeDuration }}",
        "Allow fewer requests at once, or see what else runs on the machine",
    ),
)
