"""Drift of a served engine: prompts before the build, answers while it is served, scores and verdict when it has ended.

The unquantized Hugging Face model is the baseline, on the same GPUs, one after the other with the engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trtpipe.chain import check, prompts, served, trtllm_scoring
from trtpipe.chain.acceptance.measures import QUESTIONS
from trtpipe.chain.acceptance.steps import CheckFailed
from trtpipe.chain.trtllm_release import SAME
from trtpipe.core import model_folder
from trtpipe.core.chat import ChatTokenizer
from trtpipe.engines import scored_rows
from trtpipe.engines.scoring.scripted import Place
from trtpipe.engines.trtllm.build import probe
from trtpipe.engines.trtllm.build.releases import RELEASES
from trtpipe.errors import ConfigError, GateInconclusive, GateRejected, raise_all
from trtpipe.quantization.kinds.recognised import quantization_of

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.chain.plan import Planned
    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner
    from trtpipe.triton_repo.server import Server

STEPS = ("prompts", "answers", "drift")
# Eight A100 run the held-out prompts in minutes; a 16-bit model that the GPUs do not hold takes hours.
SCORING_LIMIT_S = 14400.0
COMPARED = ("overall", "segments", "reasons", "policy", "intervals")


def why_not(baseline: Path) -> str | None:
    """Return why drift can't be measured; None where it can. ``baseline``: the folder of the unquantized model.

    Raises ConfigError where that is no model's folder.
    """
    model_folder.config_of(baseline)
    if quantization_of(baseline):
        return f"{baseline} is quantized already: give the model that it was made of with --baseline"
    if not any(baseline.glob(model_folder.WEIGHTS)):
        return f"{baseline} has no weights ({model_folder.WEIGHTS}): give the unquantized model with --baseline"
    return None


class Drift:
    """``baseline``: the folder of the unquantized model."""

    def __init__(self, space: Workspace, runner: Runner, planned: Planned, baseline: Path) -> None:
        self._space, self._runner, self._planned, self._baseline = space, runner, planned, baseline
        self._model_digest = ""
        self._prompts: Artifact
        self._answers: list[dict[str, Any]] = []

    def prompts(self) -> dict[str, Any]:
        """Obtain the prompt set. Raises ConfigError for a baseline of another model, and rows that are too long."""
        limits, folder = self._planned.plan.limits, self._baseline
        assert limits is not None  # noqa: S101 - the plan is legal
        _require_same_model(self._planned.model, folder)
        self._model_digest = model_folder.identity(folder, self._runner.store.state / "model-digests.json", keep=True)
        block_tokens = self._planned.plan.target.kv_block_tokens
        stage = prompts.stage(self._space, folder, self._model_digest, block_tokens)
        self._prompts = self._runner.obtain(stage)
        rows = scored_rows.read(self._prompts.path / trtllm_scoring.HELD_OUT, max_model_len=limits.seq_len)
        return {
            "reused": self._runner.outcomes[-1].reused,
            "path": str(self._prompts.path),
            "digest": self._prompts.digest,
            "heldout_prompts": len(rows),
            "scored_tokens": sum(row.tokens for row in rows),
        }

    def answers(self, serving: Server, release: Artifact) -> dict[str, Any]:
        """Ask held-out prompts. Raises ConfigError where none leaves room for an answer."""
        count = self._space.policy.served_prompts
        self._answers = served.ask(serving, release, self._prompts, count, self._runner.reporter)
        if not self._answers:
            raise ConfigError(
                f"no held-out prompt leaves room for an answer of {served.ANSWER_TOKENS_MAX} tokens",
                where=str(self._prompts.path / trtllm_scoring.HELD_OUT),
                fix="give shorter prompts, or build for a longer max_seq_len",
            )
        return {"prompts": len(self._answers), "answer_tokens_max": served.ANSWER_TOKENS_MAX}

    def verdict(self, release: Artifact) -> dict[str, Any]:
        """Score both and judge; nothing may hold the GPUs. Raises CheckFailed unless the verdict is a pass."""
        target, runner = self._planned.plan.target, self._runner
        place = Place(probe.find(RELEASES[target.version], target.container_image), SCORING_LIMIT_S)
        model, chosen = self._baseline, self._prompts
        baseline = runner.obtain(trtllm_scoring.baseline_stage(model, self._model_digest, chosen, place))
        stage = trtllm_scoring.release_stage(release, baseline, chosen, self._answers, model, place)
        scores = runner.obtain(stage)
        verdict = runner.obtain(check.stage(release, baseline, scores, chosen, self._space.policy))
        found = json.loads((verdict.path / "verdict.json").read_text("utf-8"))
        figures = {
            "verdict": found["verdict"],
            "path": str(verdict.path),
            "baseline": {"model": str(model), "notes": baseline.record.notes, **baseline.record.figures},
            "engine": scores.record.figures,
            "scores_reused": {"baseline": _is_reused(runner, baseline), "engine": _is_reused(runner, scores)},
            **{name: found[name] for name in COMPARED},
            "served": {name: value for name, value in found["served"].items() if name != "prompts"},
        }
        if found["verdict"] != "pass":
            kind = GateRejected if found["verdict"] == "fail" else GateInconclusive
            what = f"the drift check says {found['verdict']}: " + "; ".join(found["reasons"])
            fix = "read verdict.html there; calibrate on prompts like the traffic, or change the policy with a reason"
            raise CheckFailed(figures, [kind(what, where=str(verdict.path / "verdict.json"), fix=fix)])
        return figures


def _is_reused(runner: Runner, artifact: Artifact) -> bool:
    return next(outcome.reused for outcome in runner.outcomes if outcome.artifact.path == artifact.path)


def _require_same_model(model: Path, baseline: Path) -> None:
    """Raise ConfigError where the unquantized model can't be used, or is another than the engine's."""
    own, other = model_folder.check(baseline), model_folder.config_of(model)
    raise_all([
        ConfigError(
            f"the unquantized model's {key} is {own.get(key)}, that of --model {other.get(key)}",
            where=str(baseline / "config.json"),
            fix="give the model that the checkpoint was made of with --baseline",
        )
        for key in (*SAME, "vocab_size")
        if own.get(key) != other.get(key)
    ])  # fmt: skip
    ids = [
        [tokenizer.encode_chat([{"role": "user", "content": question}]) for question in QUESTIONS]
        for tokenizer in map(ChatTokenizer.load, (baseline, model))
    ]
    if ids[0] != ids[1]:
        raise ConfigError(
            "the unquantized model's tokenizer or chat template makes other ids of a question than that of --model",
            where=str(baseline / "tokenizer.json"),
            fix="give the model that the checkpoint was made of with --baseline",
        )
