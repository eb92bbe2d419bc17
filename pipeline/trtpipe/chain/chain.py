"""The chain of stages of one workspace, from the model to the verdict."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trtpipe.chain import check, prompts, scoring
from trtpipe.config.load import Workspace
from trtpipe.config.schema import SAMPLE_MODEL
from trtpipe.config.target import TensorrtLlmTarget, VllmTarget
from trtpipe.core import environment, model_folder
from trtpipe.core.artifacts import Artifact
from trtpipe.core.runner import Runner
from trtpipe.engines import vllm_arguments, vllm_build
from trtpipe.engines.vllm_arguments import VllmPlan, VllmSettings
from trtpipe.errors import EnvironmentUnfit
from trtpipe.quantization import preflight
from trtpipe.quantization import stage as quantization
from trtpipe.quantization.kinds import stage as foreign
from trtpipe.sample import stage as sample
from trtpipe.triton_repo import installation, overlays, repository

# Property of the chain -> stage that makes it, in the order in which a run needs them.
STAGE_NAMES = {
    "model": "sample-model",
    "prompt_set": "select-prompts",
    "checkpoint": "calibrate",
    "engine": "build-engine",
    "release": "package",
    "baseline": "score-baseline",
    "release_scores": "score-release",
    "verdict": "check-drift",
}


@dataclass(frozen=True)
class Model:
    """The unquantized model's folder and identity."""

    folder: Path
    digest: str


class Chain:
    """Each property obtains its artifact, and those before it, once.

    ``keep_digests``: whether the digests of a model's files are kept in the workspace, so that they are computed once.
    """

    def __init__(self, space: Workspace, runner: Runner, *, keep_digests: bool = True) -> None:
        self.space = space
        self.keep_digests = keep_digests
        self.runner = runner

    @cached_property
    def plan(self) -> VllmPlan:
        """What the local engine is started with.

        Raises EnvironmentUnfit where this CPU can't do it, or the target is of another engine. Whatever needs the
        engine asks for its plan first: hours of calibration come before it.
        """
        not_the_engines = {"kind", "weights", "load_time_limit_s", "triton"}
        settings = VllmSettings(**_local(self.space).model_dump(exclude=not_the_engines))
        cores = len(os.sched_getaffinity(0))
        return vllm_arguments.plan(
            settings,
            cpu_has_fp8_kv=environment.cpu_has_fp8_kv(),
            cpu_has_avx512=environment.cpu_has_avx512(),
            cpu_cores=cores,
        )

    @cached_property
    def model(self) -> Model:
        state = self.runner.store.state
        if self.space.config.model == SAMPLE_MODEL:
            artifact = self.runner.obtain(sample.stage(state / "downloads"))
            return Model(artifact.path, artifact.digest)
        folder = self.space.resolve(self.space.config.model)
        model_folder.check(folder)
        return Model(folder, model_folder.identity(folder, state / "model-digests.json", keep=self.keep_digests))

    @cached_property
    def prompt_set(self) -> Artifact:
        block_tokens = self.space.target.kv_block_tokens
        return self.runner.obtain(prompts.stage(self.space, self.model.folder, self.model.digest, block_tokens))

    @cached_property
    def checkpoint(self) -> Artifact:
        settings = self.space.config.quantization
        preflight.check(self.model.folder)
        group_size = quantization.group_size_for(self.model.folder, settings.group_size)
        if settings.kind != "awq":
            return self._foreign_checkpoint(settings.kind, group_size)
        recipe = quantization.AwqRecipe(
            recipe=settings.recipe,
            group_size=group_size,
            alpha_grid_points=settings.alpha_grid_points,
            symmetric=settings.symmetric,
            inputs=settings.inputs,
            kv_scales=settings.kv_scales,
        )
        return self.runner.obtain(
            quantization.stage(
                self.model.folder,
                self.model.digest,
                self.prompt_set,
                recipe,
                processes=settings.processes,
                time_limit_s=settings.time_limit_s,
            )
        )

    def _foreign_checkpoint(self, kind: foreign.Kind, group_size: int) -> Artifact:
        """Obtain the checkpoint of another quantizer."""
        settings = self.space.config.quantization
        place = foreign.Place(
            environment=self.space.resolve(settings.environment) if settings.environment else None,
            checkpoint=self.space.resolve(settings.checkpoint) if settings.checkpoint else None,
        )
        recipe = foreign.ForeignRecipe(recipe=kind, group_size=group_size, kv_scales=settings.kv_scales)
        return self.runner.obtain(
            foreign.stage(
                self.model.folder,
                self.model.digest,
                self.prompt_set,
                recipe,
                place,
                time_limit_s=settings.time_limit_s,
            )
        )

    @cached_property
    def engine(self) -> Artifact:
        plan, limit_s = self.plan, self.space.target.load_time_limit_s
        return self.runner.obtain(vllm_build.stage(self.checkpoint.path, self.checkpoint.digest, plan, limit_s))

    @cached_property
    def release(self) -> Artifact:
        packaging = repository.Packaging(
            execution_environment=sys.prefix,
            template_date=self.space.config.prompts.template_date,
            models=_local(self.space).triton,
        )
        site = overlays.read(self.space.root / overlays.FOLDER)
        repository.judge(packaging, site)  # before the stages that it comes after: see `plan`
        return self.runner.obtain(repository.stage(self.engine.path, self.engine.digest, packaging, site))

    @cached_property
    def baseline(self) -> Artifact:
        """The unquantized model's scores on the held-out prompts."""
        plan = self.plan
        return self.runner.obtain(scoring.baseline_stage(self.model.folder, self.model.digest, self.prompt_set, plan))

    @cached_property
    def triton(self) -> scoring.TritonPlace:
        """Where the Triton is that answers the check's prompts. Raises EnvironmentUnfit where it could not run."""
        serving = self.space.config.serving
        folder = self.space.resolve(serving.triton_environment)
        installation.require_same_python(installation.find(folder), Path(sys.prefix))
        return scoring.TritonPlace(folder, self.runner.store.state, serving.ready_timeout_s)

    @cached_property
    def release_scores(self) -> Artifact:
        """The release's scores on the same prompts, and on what it answers through Triton."""
        plan, triton = self.plan, self.triton  # before the stages that they come after: see `plan`
        served_prompts = self.space.policy.served_prompts
        return self.runner.obtain(
            scoring.release_stage(self.release, self.baseline, self.prompt_set, plan, served_prompts, triton)
        )

    @cached_property
    def verdict(self) -> Artifact:
        candidate = self.release_scores
        return self.runner.obtain(
            check.stage(self.release, self.baseline, candidate, self.prompt_set, self.space.policy)
        )


def _local(space: Workspace) -> VllmTarget:
    if isinstance(space.target, TensorrtLlmTarget):
        target = space.resolve(space.config.target)
        raise EnvironmentUnfit(
            "this step works on the local engine only, and the target is of kind tensorrt-llm",
            where=f"{target} (kind)",
            fix=f"`trtpipe build-engine --target {target} --model DIR --dry-run` prints the lines that build this one, "
            "`trtpipe accept` does it all on its machine; here, use a target of kind vllm, such as engines/local.yaml",
        )
    return space.target
