"""The config file's sections. Every default lives here and nowhere else; units are in the names."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SAMPLE_MODEL = "sample"


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values are taken as written and never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Prompts(Section):
    """Which prompts are read and how they are divided."""

    files: list[str] = Field(min_length=1, description="JSONL files of prompts, relative to the config file.")
    calibration_prompts_max: int = Field(
        default=128,
        ge=1,
        description="Most prompts used for calibration; rows beyond it are counted as not needed.",
    )
    heldout_prompts_per_segment: int = Field(
        default=48,
        ge=1,
        description="Prompts of each segment kept apart for the drift check, never used for calibration.",
    )
    prompt_tokens_max: int = Field(default=1536, ge=8, description="Longest prompt with its response, in tokens.")
    over_length: Literal["cut", "drop"] = Field(
        default="cut", description="What happens to a longer row; it is counted either way."
    )
    seed: int = Field(default=0, ge=0, lt=2**64, description="Seed of the keyed hash that divides the prompts.")


class Quantization(Section):
    """How the weights become 4-bit."""

    recipe: Literal["rtn", "awq", "awq+clip", "awq+clip+round"] = Field(
        default="awq+clip+round",
        description="rtn: plain rounding; awq: activation-aware scales first; clip: each group's range is searched;"
        " round: rounding errors are compensated by the columns that follow.",
    )
    group_size: Literal["auto", 64, 128] = Field(
        default="auto", description="Weights per scale; auto: 128 where every width divides, else 64."
    )
    alpha_grid_points: int = Field(
        default=10, ge=2, le=100, description="Evenly spaced points of the scale search, before it is refined."
    )
    time_limit_s: float = Field(default=14400, gt=0, description="The stage is stopped after this time.")


class Serving(Section):
    """Where Triton listens."""

    host: str = Field(default="127.0.0.1", description="Address that the server binds and clients use.")
    http_port: int = Field(default=8000, ge=1, le=65535)
    grpc_port: int = Field(default=8001, ge=1, le=65535)
    metrics_port: int = Field(default=8002, ge=1, le=65535)
    ready_timeout_s: float = Field(default=180, gt=0, description="The server must be ready within this time.")
    triton_environment: str = Field(
        default=".venv-triton",
        description="The Python environment that holds Triton, relative to the config file.",
    )


class PipelineConfig(Section):
    """The whole config file."""

    model: str = Field(
        description="Folder of a Hugging Face causal LM, or `sample` for the embedded SmolLM2-135M-Instruct."
    )
    prompts: Prompts
    quantization: Quantization = Quantization()
    target: str = Field(description="Target file: which engine, with which settings.")
    policy: str | None = Field(
        default=None, description="Policy file of the drift check; without one the default limits hold."
    )
    serving: Serving = Serving()
