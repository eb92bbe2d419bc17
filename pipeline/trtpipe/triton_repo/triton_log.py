"""What Triton's log says about a start that failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtpipe.core.process import tail

if TYPE_CHECKING:
    from pathlib import Path

LOAD_FAILURE = re.compile(r"failed to load '([^']+)' version \d+: (.*)")
REASON_CHARACTERS = 600


def why_ended(log: Path) -> str:
    """Return the reasons of the models that could not be loaded: Triton writes them long before its last lines."""
    failures = LOAD_FAILURE.findall(log.read_text(encoding="utf-8", errors="replace"))
    if not failures:
        return f"Triton ended while loading\n{tail(log)}"
    reasons = [f"  | {model}: {_readable(reason)}" for model, reason in failures]
    return "\n".join(["Triton ended: a model does not load", *reasons])


def _readable(reason: str) -> str:
    """Undo the escapes of the log, which keeps a message of many lines on one."""
    return reason.removesuffix('"').replace(r"\n", " ")[:REASON_CHARACTERS]
