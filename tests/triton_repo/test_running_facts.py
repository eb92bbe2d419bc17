"""What a running Triton says of itself, and the engine's ids, from servers that say it in the wrong form too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trtpipe.errors import ToolFailed
from trtpipe.triton_repo import engine_ids, running_facts
from trtpipe.triton_repo.exchange import NoServer
from trtpipe.triton_repo.running_facts import KvBlocks

# As the README of triton-inference-server/tensorrtllm_backend shows them, values changed.
METRICS = """\
# HELP nv_trt_llm_kv_cache_block_metrics TRT LLM KV cache metrics
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.4875
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 1
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6239
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
"""


@contextmanager
def answering(content: str, status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the same content for every request; give the address, and what is asked for."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content.encode())

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def log_message(self, *message: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_the_kv_pool_is_read_from_upstreams_metrics() -> None:
    with answering(METRICS) as (url, _):
        assert running_facts.kv_blocks(f"{url}/metrics") == KvBlocks(blocks=6239, block_tokens=64)


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ("", 200, "the metrics have 0 values of nv_trt_llm_kv_cache_block_metrics max"),
        (METRICS * 2, 200, "the metrics have 2 values"),
        (METRICS, 503, "the server does not answer: Server error '503"),
    ],
)
def test_metrics_without_one_pool_are_refused(content: str, status: int, said: str) -> None:
    with answering(content, status) as (url, _), pytest.raises(ToolFailed) as caught:
        running_facts.kv_blocks(f"{url}/metrics")
    assert said in caught.value.what
    assert caught.value.where == f"{url}/metrics"


def ask(url: str) -> list[int]:
    return engine_ids.answer(url, [3, 1], max_tokens=4, end_id=2, pad_id=0)


@pytest.mark.parametrize(
    ("events", "ids"),
    [
        ([{"output_ids": [5, 6, 7, 0], "sequence_length": 3}], [5, 6, 7]),
        ([{"output_ids": 5, "sequence_length": 1}], [5]),  # Triton writes a tensor of one value as that value
        ([{"output_ids": [5], "sequence_length": 1}, {"output_ids": [6, 7], "sequence_length": 2}], [5, 6, 7]),
        ([{"output_ids": [0, 0], "sequence_length": 0}], []),
    ],
)
def test_the_ids_are_those_up_to_the_length(events: list[dict[str, Any]], ids: list[int]) -> None:
    content = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    with answering(content) as (url, asked):
        assert ask(url) == ids
    assert asked == [
        {"input_ids": [3, 1], "input_lengths": 2, "request_output_len": 4, "end_id": 2, "pad_id": 0, "streaming": False}
    ]


def test_a_refusal_and_a_server_that_is_gone_are_told() -> None:
    with answering('{"error": "no such model"}', 400) as (url, _), pytest.raises(ToolFailed, match="no such model"):
        ask(url)
    with pytest.raises(NoServer):
        ask(url)
