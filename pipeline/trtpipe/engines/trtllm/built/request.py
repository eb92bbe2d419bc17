"""What a build was asked for: kept beside the engine, since its config.json has only what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trtpipe.config.target import TensorrtLlmTarget
from trtpipe.core.store import write_json
from trtpipe.errors import ConfigError

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
    if not path.is_file():
        return None
    try:
        return Request.model_validate_json(path.read_bytes())
    except ValidationError as fault:
        first = fault.errors()[0]
        raise ConfigError(
            f"the request is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(path),
            fix="build the engine again",
        ) from None
