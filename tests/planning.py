"""Plans of public models on the repository's targets, for tests. ``public_configs/``: dimensions as published."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trtpipe.config.load import target_file
from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.engines.trtllm import plan as planning
from trtpipe.engines.trtllm.lengths import Lengths
from trtpipe.engines.trtllm.shape import DecoderShape
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.findings import Finding
    from trtpipe.engines.trtllm.plan import Plan

MODELS = REPOSITORY / "tests/public_configs"
TARGETS = ("a100x8", "a100x8-reuse", "a100x1", "h200", "l40s")


def model(name: str) -> Path:
    return MODELS / name


def config(name: str, **changes: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((model(name) / "config.json").read_text())
    return read | changes


def shape(name: str, **changes: Any) -> DecoderShape:
    return DecoderShape.of(config(name, **changes), "config.json")


def target_path(name: str) -> Path:
    return REPOSITORY / f"engines/{name}.yaml"


def target(name: str, **changes: Any) -> TensorrtLlmTarget:
    """Return a target of the repository with some keys changed, checked as if they stood in the file."""
    read = target_file(target_path(name)).target
    assert isinstance(read, TensorrtLlmTarget)
    return TensorrtLlmTarget.model_validate(read.model_dump() | changes)


def plan(
    name: str, target_name: str, *, lengths: Lengths | None = None, changes: dict[str, Any] | None = None, **more: Any
) -> Plan:
    """Plan a public model (its config.json with ``changes``) on a target (with ``more`` keys changed)."""
    made = config(name, **(changes or {}))
    return planning.make(made, target(target_name, **more), where="config.json", lengths=lengths)


def lengths(longest: int, *, median: int = 500, answer: int = 200) -> Lengths:
    prompt = {"p50": median, "p95": max(median, longest // 2), "p99": longest, "max": longest}
    return Lengths(prompt, dict.fromkeys(prompt, answer), reuse_share=0.25, bounds=False)


def of_kind(made: Plan, kind: str) -> list[Finding]:
    return [finding for finding in made.findings if finding.kind == kind]


def refused(made: Plan) -> list[str]:
    return [finding.what for finding in made.refusals]
