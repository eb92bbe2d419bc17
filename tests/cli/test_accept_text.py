"""An acceptance on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.cli.accept_text import text

if TYPE_CHECKING:
    from collections.abc import Callable


def finding(metric: str, value: float, bound: str, limit: float, outcome: str = "pass") -> dict[str, Any]:
    return {
        "metric": metric, "value": value, "low": value * 0.9, "high": value * 1.1, "bound": bound, "limit": limit,
        "outcome": outcome, "prompts": 240, "tokens": 34_567,
    }  # fmt: skip


ENGINE = {"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48", "builder_reported": "1.2.1"}
STEPS: dict[str, dict[str, Any]] = {
    "prompts": {"state": "done", "seconds": 3.0, "heldout_prompts": 240, "scored_tokens": 34_567},
    "build": {
        "state": "done", "seconds": 1804.2, "reused": False, "seconds_when_made": 1801.0, "path": "engines/built/1",
    },
    "inspect": {
        "state": "done", "seconds": 31.0, "world_size": 8, "findings": [],
        "limits": {"max_batch_size": 512, "max_seq_len": 8192, "max_num_tokens": 8192},
    },
    "package": {"state": "done", "seconds": 2.0, "path": "triton_repo/releases/2"},
    "launch": {"state": "done", "seconds": 141.2, "seconds_to_ready": 140.1},
    "kv-blocks": {
        "state": "failed", "seconds": 0.1, "blocks": 51_000, "block_tokens": 32, "planned_blocks": 88_000,
        "blocks_of_planned": 0.5795, "full_length_sequences": 199, "runtime_reserve_mib_measured": 31_000,
        "errors": [{"what": "the KV cache has 51,000 blocks, 58.0% of 88,000 planned"}],
    },
    "golden-ids": {"state": "done", "seconds": 4.0, "questions": 1, "answers": [{"answer_ids": [1, 2, 3]}]},
    "load": {
        "state": "done", "seconds": 60.0, "requests": 128, "clients": 16, "failed": 0, "answer_tokens": 16_384,
        "answer_tokens_per_second": 1234.5, "ttft_ms": {"samples": 128, "p50": 80.0, "p95": 120.5},
        "tpot_ms": {"samples": 0},
    },
    "answers": {"state": "done", "seconds": 20.0, "prompts": 20, "answer_tokens_max": 48},
    "drift": {
        "state": "failed", "seconds": 900.0, "verdict": "fail",
        "baseline": {"runs_with": "Hugging Face transformers 4.57.1, torch 2.9.0", "dtype": "bfloat16"},
        "overall": {
            "kl_top20_nats": finding("kl_top20_nats", 0.0712345, "max", 0.05, "fail"),
            "top1_agreement": finding("top1_agreement", 0.9512, "min", 0.94, "inconclusive"),
        },
        "served": {"agreement": finding("top1_agreement", 1.0, "min", 0.9)},
        "errors": [{"what": "the drift check says fail: overall: kl_top20_nats"}],
    },
}  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    gpus = [{"name": "NVIDIA A100-SXM4-80GB"}] * 8
    server = {"name": "triton", "version": "2.60.0"}
    return {"ok": False, "machine": {"gpus": gpus}, "engine": ENGINE, "server": server, "steps": STEPS} | changes


def test_each_step_has_its_line(golden: Callable[[str, str], None]) -> None:
    golden("accept.txt", text(document(), Path("accept-a100x8.json")) + "\n")


def test_what_has_not_run_is_told_and_what_never_was_is_left_out() -> None:
    waiting = {"state": "not run", "seconds": None, "why": "build ended before"}
    failed = {"state": "failed", "seconds": 3.0, "errors": [{"what": "killed by SIGKILL"}]}
    said = text(document(engine={}, server={}, steps={"build": failed, "inspect": waiting}), Path("a.json"))
    assert said.splitlines()[2:4] == [
        "build       failed            3.0 s  killed by SIGKILL",
        "inspect     not run                  build ended before",
    ]
