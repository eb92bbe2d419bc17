"""What a running Triton says of itself: its name and version, and how many KV blocks the engine has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx

from trtpipe.errors import ToolFailed

LIMIT_S = 10.0
# triton_backend/inflight_batcher_llm/src/custom_metrics_reporter/custom_metrics_reporter.cc
KV_FAMILY, KV_LABEL = "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type"


@dataclass(frozen=True)
class KvBlocks:
    """``blocks``: of the whole pool, which every rank has; ``block_tokens``: tokens of one."""

    blocks: int
    block_tokens: int


def about(http_url: str) -> dict[str, Any]:
    """Return the server's own name and version. Raises ToolFailed."""
    try:
        found = _get(f"{http_url}/v2").json()
    except ValueError:
        raise ToolFailed("what answers is no Triton", where=http_url, fix="see what listens on that port") from None
    return {name: found.get(name) for name in ("name", "version")}


def kv_blocks(metrics_url: str) -> KvBlocks:
    """Read the KV pool from the metrics. Raises ToolFailed where they don't have it."""
    lines = _get(metrics_url).text.splitlines()
    return KvBlocks(_value(lines, "max", metrics_url), _value(lines, "tokens_per", metrics_url))


def _value(lines: list[str], name: str, url: str) -> int:
    pattern = re.compile(rf'^{KV_FAMILY}\{{[^}}]*{KV_LABEL}="{name}"[^}}]*\}} (\S+)')
    values = [float(found[1]) for line in lines if (found := pattern.match(line))]
    if len(values) != 1:
        raise ToolFailed(
            f"the metrics have {len(values)} values of {KV_FAMILY} {name}, not one",
            where=url,
            fix="see that the engine is loaded, and that this Triton has metrics and the backend tensorrtllm",
        )
    return int(values[0])


def _get(url: str) -> httpx.Response:
    try:
        response = httpx.get(url, timeout=LIMIT_S, trust_env=False)
        return response.raise_for_status()
    except httpx.HTTPError as fault:
        what = f"the server does not answer: {fault or type(fault).__name__}"
        raise ToolFailed(what, where=url, fix="see the server's log") from None
