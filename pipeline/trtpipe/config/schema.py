"""The config file's sections. Every default lives here and nowhere else; units are in the names."""

from __future__ import annotations

import datetime
import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

SAMPLE_MODEL = "sample"


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values are taken as written and never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _without_nul(cls, value: Any) -> Any:
        """No path, host or name may hold it: the system would cut it off there, or refuse it much later."""
        if any("\0" in text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)):
            raise ValueError("a text must not hold the character NUL")
        return value


def _day(text: str) -> str:
    datetime.date.fromisoformat(text)
    return text


class Prompts(Section):
    """Which prompts are read, how they are cleaned, and how they are divided."""

    files: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1,
        description="Files, folders and globs, relative to the config file: JSONL, CSV or Parquet, also gzip or zstd.",
    )
    format: Literal["auto", "jsonl", "csv", "parquet"] = Field(
        default="auto", description="What the files are written in; auto: by name, else by content."
    )
    shape: Literal["auto", "plain", "chat", "sharegpt", "kserve", "openai-log"] = Field(
        default="auto", description="How a row is laid out; auto: by its keys, row by row."
    )
    columns: dict[
        Literal[
            "id",
            "segment",
            "prompt",
            "response",
            "messages",
            "tools",
            "conversations",
            "text_input",
            "text_output",
            "inputs",
            "outputs",
            "request",
        ],
        str,
    ] = Field(default={}, description="Our name -> the log's own; dots lead into objects, as in body.request.")
    bad_rows_share_max: float = Field(
        default=0.0, ge=0, le=1, description="Share of rows that may be unreadable; they are counted and left out."
    )
    pool_rows: int = Field(
        default=50_000,
        ge=1000,
        description="Rows (those of smallest keyed hash) that are tokenized, compared and chosen from.",
    )
    prompt_characters_min: int = Field(
        default=1, ge=1, description="Shortest request, in characters, system prompts not counted."
    )
    mask_personal_data: bool = Field(
        default=False,
        description="Whether mail and IP addresses, phone, card and account numbers and keys are replaced first.",
    )
    near_duplicate_similarity: float = Field(
        default=0.8,
        gt=0.3,
        le=1,
        description="Jaccard similarity of three-word runs from which a request is a copy of an earlier one.",
    )
    prompt_tokens_max: int = Field(default=1536, ge=8, description="Longest prompt with its response, in tokens.")
    over_length: Literal["cut", "window", "drop"] = Field(
        default="cut",
        description="What happens to a longer row; window: calibration gets it in pieces, held-out rows are cut.",
    )
    over_length_share_max: float = Field(
        default=0.1, ge=0, le=1, description="Share of longer rows from which the record says so as a finding."
    )
    calibration_prompts: int = Field(default=128, ge=1, description="Prompts to calibrate with, general ones included.")
    calibration_tokens_min: int = Field(
        default=0, ge=0, description="Tokens that the calibration prompts must have together."
    )
    general_share: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="Share of the calibration prompts taken from the general set; 0 says that there shall be none.",
    )
    general_file: str | None = Field(
        default=None, description="A general set of your own; without one the built-in set is used."
    )
    segment_prompts_min: int = Field(
        default=4, ge=0, description="Fewest calibration prompts of a segment, however rare it is."
    )
    heldout_prompts_per_segment: int = Field(
        default=48,
        ge=1,
        description="Prompts of each segment kept apart for the drift check, never used for calibration.",
    )
    allow_short: bool = Field(
        default=False, description="Whether fewer prompts or tokens than asked are noted instead of refused."
    )
    template_date: Annotated[str, AfterValidator(_day)] = Field(
        default="2026-01-01",
        pattern=r"^\d{4}-\d{2}-\d{2}$",
        description="The day that a chat template sees which asks for it: in calibration, drift check and server.",
    )
    seed: int = Field(default=0, ge=0, lt=2**64, description="Seed of the keyed hash that orders the prompts.")


class Quantization(Section):
    """How the weights become 4-bit."""

    kind: Literal["awq", "modelopt", "autoawq", "existing"] = Field(
        default="awq",
        description="Who chooses the codes: awq is this program; modelopt and autoawq run in an environment of their"
        " own; existing takes a checkpoint over that is there.",
    )
    environment: str | None = Field(
        default=None, description="Folder of the Python environment of modelopt or autoawq."
    )
    checkpoint: str | None = Field(
        default=None, description="Folder of an AutoAWQ, GPTQ or ModelOpt checkpoint of the model, for kind existing."
    )
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
    symmetric: bool = Field(
        default=True, description="No zero points; false is closer to the model, but TensorRT-LLM's W4A16_AWQ has none."
    )
    inputs: Literal["quantized", "original"] = Field(
        default="quantized",
        description="What each layer is calibrated on: outputs of the layers already quantized,"
        " or of the original ones.",
    )
    kv_scales: Literal["separate", "shared"] = Field(
        default="separate", description="shared: keys and values get one scale, as TensorRT-LLM keeps it."
    )
    processes: int = Field(
        default=1, ge=1, description="Processes that share the prompts (one GPU each, where there are GPUs)."
    )
    time_limit_s: float = Field(default=14400, gt=0, description="The stage is stopped after this time.")


class Front(Section):
    """What the OpenAI-compatible front serves, and within which limits."""

    model_name: str | None = Field(
        default=None, description="What clients call the model; without one, the name of the model's folder."
    )
    answer_tokens_max: int = Field(default=4096, ge=1, description="Longest answer that may be asked for, in tokens.")
    body_kib_max: int = Field(default=1024, ge=1, description="Largest body of a request.")
    requests_max: int = Field(default=256, ge=1, description="Requests in flight; further ones are told to come back.")
    request_limit_s: float = Field(default=300, gt=0, description="A request is ended after this time.")
    drain_s: float = Field(default=15, ge=0, description="How long running requests may go on after a stop.")


def _host(text: str) -> str:
    """Take an address or a name. What no URL can hold would only be found out by who connects."""
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            raise ValueError("not an IPv6 address; zones as in fe80::1%eth0 are not taken") from None
        if "%" in text:
            raise ValueError("zones of IPv6 addresses are not taken")
    elif not all(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", label) for label in text.split(".")):
        raise ValueError("not a host: labels of 1 to 63 letters, digits, _ and - between dots")
    return text


Host = Annotated[str, AfterValidator(_host)]


class Serving(Section):
    """Where Triton and the front listen."""

    host: Host = Field(default="127.0.0.1", description="Address that the server binds and clients use.")
    http_port: int = Field(default=8000, ge=1, le=65535)
    grpc_port: int = Field(default=8001, ge=1, le=65535)
    metrics_port: int = Field(default=8002, ge=1, le=65535)
    front_host: Host = Field(
        default="127.0.0.1", description="Address that the front binds; any other than this machine's needs an API key."
    )
    front_port: int = Field(default=9000, ge=1, le=65535)
    second_ports_up: int = Field(
        default=10,
        ge=1,
        description="How much higher Triton's three ports are for every second release of `trtpipe serve --follow`.",
    )
    front: Front = Front()
    ready_timeout_s: float = Field(default=180, gt=0, description="The server must be ready within this time.")
    triton_environment: str = Field(
        default=".venv-triton",
        description="The Python environment that holds Triton, relative to the config file.",
    )

    @model_validator(mode="after")
    def _ports_of_their_own(self) -> Serving:
        if len({self.http_port, self.grpc_port, self.metrics_port, self.front_port}) < 4:
            raise ValueError("http_port, grpc_port, metrics_port and front_port must differ")
        return self


class PipelineConfig(Section):
    """The whole config file."""

    model: str = Field(
        min_length=1,
        description="Folder of a Hugging Face causal LM, or `sample` for the embedded SmolLM2-135M-Instruct.",
    )
    prompts: Prompts
    quantization: Quantization = Quantization()
    target: str = Field(description="Target file: which engine, with which settings.")
    policy: str | None = Field(
        default=None,
        description="Policy file of the drift check; without one the default limits hold, for `sample` its own.",
    )
    serving: Serving = Serving()
