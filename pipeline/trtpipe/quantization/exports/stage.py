"""The stage ``export``: a canonical checkpoint -> one in another layout, in a folder that the user names."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.core import environment, golden_ids
from trtpipe.core.process import run_worker
from trtpipe.core.progress import Reporter
from trtpipe.core.runner import LOG, Making, Stage

WORKER = "trtpipe.quantization.exports.worker"

Layout = Literal["tensorrt-llm", "autoawq", "compressed-tensors"]


class TrtllmOptions(BaseModel):
    """How a TensorRT-LLM checkpoint is divided and typed; the other layouts have no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    kv_cache: Literal["fp8", "model"] = "fp8"
    pad_intermediate: bool = False


class Exporting(BaseModel):
    """What decides an export, apart from the checkpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layout: Layout
    options: TrtllmOptions | None

    def job(self, checkpoint: Path, folder: Path | None) -> dict[str, Any]:
        return {
            "checkpoint": str(checkpoint),
            "folder": folder and str(folder),
            "layout": self.layout,
            "options": self.options and self.options.model_dump(),
        }


def stage(checkpoint: Path, checkpoint_digest: str, exporting: Exporting, *, time_limit_s: float) -> Stage:
    def make(making: Making) -> None:
        result = run_worker(
            WORKER,
            exporting.job(checkpoint, making.folder),
            log=making.log,
            reporter=making.reporter,
            time_limit_s=time_limit_s,
        )
        golden_ids.carry(checkpoint, making.folder)
        for note in result["notes"]:
            making.note(note)

    return Stage(
        name="export",
        kind="checkpoint",
        revision=1,
        inputs={"checkpoint": checkpoint_digest},
        parameters=exporting,
        versions={name: environment.version_of(name, extra="vllm") for name in ("torch", "safetensors")},
        make=make,
    )


def foresee(checkpoint: Path, exporting: Exporting, reporter: Reporter, *, time_limit_s: float) -> list[str]:
    """Return what an export would change, without writing it. Raises what the export itself would raise."""
    with TemporaryDirectory() as folder:
        job, log = exporting.job(checkpoint, None), Path(folder) / LOG
        notes: list[str] = run_worker(WORKER, job, log=log, reporter=reporter, time_limit_s=time_limit_s)["notes"]
    return notes
