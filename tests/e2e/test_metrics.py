"""Every metric of the dashboard and the alert rules, scraped from the running server."""

from __future__ import annotations

import re

import httpx
import pytest

from expressions import selected
from served_metrics import Metrics
from trtpipe.triton_repo import client
from trtpipe.triton_repo import metric_families as families
from trtpipe.triton_repo.monitoring_tables import ALERTS, PANELS
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

PROMPT = "Name three rivers of Europe."
# Triton has them only where a request has failed.
MAY_BE_MISSING = {"nv_inference_request_failure"}


@pytest.fixture
def scraped(settled: Metrics, running: Server) -> str:
    """The metrics after a request."""
    client.ask(running.addresses.http_url, PROMPT, max_tokens=8)
    settled.until(lambda: settled("nv_trt_llm_request_metrics", "active") == 0)
    return httpx.get(running.addresses.metrics_url, timeout=10, trust_env=False).text


def test_every_family_of_the_local_engine_is_there(scraped: str) -> None:
    for family in families.LOCAL:
        assert f"# TYPE {family.name} {family.kind}\n" in scraped
        for value in family.values:
            name = f"{family.name}_bucket" if family.buckets else family.name
            own = f'{family.label}="{value}"' if family.label else ""
            (labels,) = {
                frozenset(re.findall(r'(\w+)="', found))
                for found in re.findall(rf"^{name}{{(.*)}} ", scraped, flags=re.MULTILINE)
                if own in found
            }
            assert labels == {"model", "version", *([family.label] if own else []), *(["le"] if family.buckets else [])}


def test_dashboard_and_alerts_find_what_they_ask_for(scraped: str) -> None:
    asked = [one for panel in PANELS for line in panel.lines.values() for one in selected(line)]
    asked += [one for alert in ALERTS for one in selected(alert.when)]

    assert len(asked) > 30
    for name, matchers in asked:
        series = re.findall(rf"^{name}{{(.*)}} ", scraped, flags=re.MULTILINE)
        found = [one for one in series if all(f'{label}="{value}"' in one for label, value in matchers.items())]
        assert found or name in MAY_BE_MISSING, f"{name} {matchers}"


def test_a_request_is_counted_once(settled: Metrics, running: Server) -> None:
    def counts() -> dict[str, float]:
        text = httpx.get(running.addresses.metrics_url, timeout=10, trust_env=False).text
        return {
            name: float(number)
            for name, number in re.findall(r"^(\w+_(?:count|sum)){[^}]*} (\S+)$", text, flags=re.MULTILINE)
        }

    before, tokens = counts(), settled("trtpipe_tokens", "answer")
    client.ask(running.addresses.http_url, PROMPT, max_tokens=8, options={"end_id": -1})
    settled.until(lambda: settled("nv_trt_llm_request_metrics", "active") == 0)
    after = counts()

    def gained(name: str) -> float:
        return after[name] - before[name]

    assert gained("nv_llm_output_token_len_sum") == 8
    assert settled("trtpipe_tokens", "answer") - tokens == 8
    assert gained("nv_llm_input_token_len_sum") > 8
    for family in (families.ANSWER_LENGTHS, families.PROMPT_LENGTHS, families.FIRST_TOKEN_S, families.TOKEN_S):
        assert gained(f"{family.name}_count") == 1
    assert 0 < gained(f"{families.TOKEN_S.name}_sum") < gained(f"{families.FIRST_TOKEN_S.name}_sum") + 30
