"""The stage ``check-drift``: two sets of scores and a policy become a verdict on one release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from trtpipe.chain import released
from trtpipe.chain.scoring import SCORES, SERVED_SCORES
from trtpipe.config.policy import DriftPolicy
from trtpipe.core import environment, scores
from trtpipe.core.artifacts import Artifact
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.runner import Making, Stage
from trtpipe.drift import gate, metrics, table, verdict
from trtpipe.drift.policy import Policy
from trtpipe.drift.served import judge_served
from trtpipe.engines.trtllm.built import lock, request
from trtpipe.report import drift as report

if TYPE_CHECKING:
    from pathlib import Path


def stage(
    release: Artifact, baseline: Artifact, release_scores: Artifact, prompts: Artifact, drift_policy: DriftPolicy
) -> Stage:
    """Build the stage; its verdict holds for exactly this release."""
    policy = Policy(**drift_policy.model_dump())

    def make(making: Making) -> None:
        rows = metrics.compare(scores.load(baseline.path / SCORES), scores.load(release_scores.path / SCORES))
        tokenizer = ChatTokenizer.load(released.read(release).tokenizer)
        reached = verdict.decide(
            verdict.Digests(release=release.digest, baseline=baseline.digest, prompt_set=prompts.digest),
            _engine_facts(release),
            policy,
            gate.judge_rows(rows, _segments(prompts), policy),
            judge_served(scores.load(release_scores.path / SERVED_SCORES), tokenizer.eos_ids, policy),
        )
        (making.folder / "verdict.json").write_text(reached.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (making.folder / "verdict.txt").write_text(table.render(reached) + "\n", encoding="utf-8")
        page = report.page(reached.model_dump(mode="json"))
        (making.folder / "verdict.html").write_text(page, encoding="utf-8")
        making.figures |= {"verdict": reached.verdict}
        making.figures |= {name: finding.value for name, finding in reached.overall.items()}

    return Stage(
        name="check-drift",
        kind="verdict",
        revision=4,
        inputs={
            "release": release.digest,
            "baseline": baseline.digest,
            "release-scores": release_scores.digest,
            "prompt-set": prompts.digest,
        },
        parameters=policy,
        versions={"numpy": np.__version__},
        make=make,
    )


def _segments(prompts: Artifact) -> dict[str, str]:
    with (prompts.path / "heldout.jsonl").open(encoding="utf-8") as file:
        return {row["id"]: row["segment"] for row in map(json.loads, file)}


def _engine_facts(release: Artifact) -> verdict.EngineFacts:
    if released.is_tensorrt_llm(release.path / "engine"):
        return _tensorrt_llm_facts(release.path / "engine")
    engine = json.loads((release.path / "engine" / "engine.json").read_text("utf-8"))
    kv_dtype = engine["resolved"]["kv_dtype"]
    return verdict.EngineFacts(
        name=engine["kind"],
        version=engine["engine_version"],
        kv_dtype=kv_dtype,
        kv_scale_source="calibrated, per layer, K and V apart" if kv_dtype.startswith("fp8") else "none: not quantized",
        cpu_flags=list(environment.cpu_flags()),
    )


def _tensorrt_llm_facts(engine: Path) -> verdict.EngineFacts:
    kept, asked = lock.read(engine), request.read(engine)
    kv_dtype = "unknown" if asked is None else asked.target.kv_dtype
    quantized = kv_dtype != "model"
    return verdict.EngineFacts(
        name="tensorrt-llm",
        version=kept.tensorrt_llm,
        kv_dtype=kv_dtype if quantized or asked is None else asked.target.dtype,
        kv_scale_source="the checkpoint's, per layer, one for K and V" if quantized else "none: not quantized",
        cpu_flags=[],
        gpus=[kept.gpu_name] * len(kept.sm_by_rank),
    )
