"""JSON documents that this program wrote: read back as their model, or told apart by what is damaged in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

Document = TypeVar("Document", bound=BaseModel)


def read(path: Path, model: type[Document], name: str, fix: str) -> Document:
    """Return the document at ``path``; ``name`` and ``fix`` are for the message.

    Raises FileNotFoundError, and ConfigError with the first field that is not as it was written.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as fault:
        first = fault.errors()[0]
        field = ".".join(map(str, first["loc"])) or "all of it"
        raise ConfigError(f"the {name} is damaged: {field}: {first['msg']}", where=str(path), fix=fix) from None
