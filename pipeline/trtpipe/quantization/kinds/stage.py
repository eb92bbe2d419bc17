"""The stage ``calibrate`` where another quantizer chooses the codes, or has chosen them: the same kind of artifact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.core import digest, environment, golden_ids
from trtpipe.core.artifacts import Artifact
from trtpipe.core.process import run_worker
from trtpipe.core.runner import Making, Stage
from trtpipe.errors import ConfigError
from trtpipe.quantization.kinds import environments
from trtpipe.quantization.kinds.recognised import recognise

WORKER = "trtpipe.quantization.kinds.worker"
Kind = Literal["modelopt", "autoawq", "existing"]


class ForeignRecipe(BaseModel):
    """What decides the checkpoint, apart from the model, the prompts and the quantizer's versions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: Kind
    group_size: int
    kv_scales: Literal["shared", "separate"]


@dataclass(frozen=True)
class Place:
    """Where the quantizer's environment is, or the checkpoint that exists; only the one that the kind needs counts."""

    environment: Path | None
    checkpoint: Path | None


def stage(
    model: Path, model_digest: str, prompts: Artifact, recipe: ForeignRecipe, place: Place, *, time_limit_s: float
) -> Stage:
    """Build the stage. Raises ConfigError or EnvironmentUnfit, before anything is loaded, where the place is unfit."""
    inputs = {"model": model_digest, "prompt-set": prompts.digest}
    versions = {name: environment.version_of(name, extra="vllm") for name in ("torch", "transformers", "safetensors")}
    job = {"model": str(model), "prompts": str(prompts.path / "calibration.jsonl"), "kind": recipe.recipe}
    if recipe.recipe == "existing":
        folder = _existing(place.checkpoint, recipe.group_size)
        inputs["checkpoint"] = digest.of_value(digest.of_folder(folder))
        job |= {"existing": str(folder), "python": ""}
    else:
        python = environments.python_of(recipe.recipe, place.environment)
        versions |= {f"its {name}": v for name, v in environments.versions(recipe.recipe, python).items()}
        job |= {"existing": "", "python": str(python)}

    def make(making: Making) -> None:
        result = run_worker(
            WORKER,
            {**job, **recipe.model_dump(exclude={"recipe"}), "folder": str(making.folder)},
            log=making.log,
            reporter=making.reporter,
            time_limit_s=time_limit_s,
            environment={"OMP_WAIT_POLICY": "passive"},  # threads that spin while they wait starve each other
        )
        golden_ids.carry(prompts.path, making.folder)
        for note in result["notes"]:
            making.note(note)
        making.figures |= {
            "group_size": recipe.group_size,
            "calibration_tokens": result["calibration_tokens"],
            "computed_on": result["computed_on"],
            "peak_rss_mib": result["peak_rss_mib"],
            "per_layer": result["layers"],
        }

    return Stage(
        name="calibrate",
        kind="checkpoint",
        revision=1,
        inputs=inputs,
        parameters=recipe,
        versions=versions,
        make=make,
    )


def _existing(folder: Path | None, group_size: int) -> Path:
    if folder is None or not (folder / "config.json").is_file():
        raise ConfigError(
            "the checkpoint to take over is not there" if folder else "no checkpoint to take over is given",
            where=str(folder) if folder else "quantization.checkpoint",
            fix="give the folder of an AutoAWQ, GPTQ or ModelOpt checkpoint of the same model",
        )
    found = recognise(folder)
    if found.group_size != group_size:
        raise ConfigError(
            f"the checkpoint has group size {found.group_size}, the config asks for {group_size}",
            where=str(folder / "config.json"),
            fix=f"quantization.group_size: {found.group_size}, if it is legal for this model",
        )
    return folder
