"""The two scoring stages of a TensorRT-LLM release: the unquantized Hugging Face model, and the release's engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from trtpipe.chain.scoring import SCORES, SERVED_ROWS, SERVED_SCORES
from trtpipe.core import artifacts, digest, model_folder
from trtpipe.core.runner import Making, Stage
from trtpipe.engines.scoring import scripted
from trtpipe.engines.trtllm.built import folder, request

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact
    from trtpipe.engines.scoring.scripted import Place

HELD_OUT = "heldout.jsonl"


class Baseline(BaseModel):
    """How the unquantized model is run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runs_with: str = "Hugging Face transformers"


class EngineScoring(BaseModel):
    """How the release's engine is run; its folder says all but this."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vocabulary: int
    kv_memory_share: float
    chunked_context: bool


def baseline_stage(model: Path, model_digest: str, prompts: Artifact, place: Place) -> Stage:
    """Original weights in the type that they are stored in, one pass over each held-out prompt with its response."""

    def make(making: Making) -> None:
        job = {"model": str(model), "rows": str(prompts.path / HELD_OUT)}
        read = [model, prompts.path]
        making.figures |= scripted.score(scripted.BASELINE, job, place, making, read=read, ranks=None)
        scripted.require_scores(making.folder / SCORES, making)

    return Stage(
        name="score-baseline",
        kind="scores",
        revision=1,
        inputs={"model": model_digest, "prompt-set": prompts.digest},
        parameters=Baseline(),
        versions=_versions(place),
        make=make,
    )


def release_stage(
    release: Artifact, baseline: Artifact, prompts: Artifact, answers: list[dict[str, Any]], model: Path, place: Place
) -> Stage:
    """The release's engine on the same rows, and on ``answers``: rows of what it said when it was served."""
    packaged, engine = release.record.parts.parameters, release.path / "engine"
    parameters = EngineScoring(
        vocabulary=model_folder.config_of(model)["vocab_size"],
        kv_memory_share=packaged["kv_memory_share"],
        chunked_context=packaged["chunked_context"],
    )

    def make(making: Making) -> None:
        artifacts.verify(release)
        lines = "".join(json.dumps(row) + "\n" for row in answers)
        (making.folder / SERVED_ROWS).write_text(lines, encoding="utf-8")
        heldout, scores = prompts.path / HELD_OUT, baseline.path / SCORES
        job = {
            "engine": str(engine),
            **parameters.model_dump(),
            "tasks": [
                {"rows": str(heldout), "baseline": str(scores), "output": SCORES},
                {"rows": SERVED_ROWS, "baseline": None, "output": SERVED_SCORES},
            ],
        }
        read = [engine, prompts.path, baseline.path]
        ranks = folder.read(engine).world_size
        making.figures |= scripted.score(scripted.ENGINE, job, place, making, read=read, ranks=ranks)
        for name in (SCORES, SERVED_SCORES):
            scripted.require_scores(making.folder / name, making)
        asked = request.read(engine)
        making.figures["kv_dtype"] = asked.target.kv_dtype if asked else None

    return Stage(
        name="score-release",
        kind="scores",
        revision=1,
        inputs={
            "release": release.digest,
            "baseline": baseline.digest,
            "prompt-set": prompts.digest,
            "answers": digest.of_value(answers),
        },
        parameters=parameters,
        versions=_versions(place),
        make=make,
    )


def _versions(place: Place) -> dict[str, str]:
    """TensorRT-LLM pins torch and transformers, which the baseline runs with."""
    return {"tensorrt_llm": place.installation.tensorrt_llm, "tensorrt": place.installation.tensorrt}
