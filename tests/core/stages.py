"""A small stage for tests of the runner and of what stands on finished artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from trtpipe.core.runner import Making, Stage

if TYPE_CHECKING:
    from collections.abc import Callable


class Parameters(BaseModel):
    value: int = 1


def write_a_file(making: Making) -> None:
    (making.folder / "file").write_text("content")


def stage(make: Callable[[Making], None] = write_a_file, value: int = 1, **fields: Any) -> Stage:
    return Stage(
        **{
            "name": "small",
            "kind": "model",
            "revision": 1,
            "inputs": {"input": "0" * 64},
            "parameters": Parameters(value=value),
            "versions": {"tool": "1"},
            "make": make,
            **fields,
        }
    )
