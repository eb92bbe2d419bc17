"""What a build was asked for: kept beside the engine, since its config.json has only what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.core import documents
from trtpipe.core.store import write_json

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = "request.json"


class Request(BaseModel):
    """The content of request.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    target: TensorrtLlmTarget
    arguments: dict[str, str | int] = Field(description="Of trtllm-build, without places.")
    foreseen: list[dict[str, Any]] = Field(description="What the plan said, refusals apart.")


def write(folder: Path, request: Request) -> None:
    write_json(folder / REQUEST, request.model_dump(mode="json"))


def read(folder: Path) -> Request | None:
    """Return what an engine was asked for; None for one that this program has not built. Raises ConfigError."""
    path = folder / REQUEST
    return documents.read(path, Request, "request", "build the engine again") if path.is_file() else None
