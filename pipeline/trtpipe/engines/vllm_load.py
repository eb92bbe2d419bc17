"""Start the local engine inside this worker process. Imported by workers only."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from vllm import LLM

from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from pathlib import Path


def load(model: Path, arguments: dict[str, Any]) -> LLM:
    """Return the engine. Raises ToolFailed with vLLM's reason."""
    try:
        return LLM(model=str(model), **arguments)
    except (ValueError, TypeError, KeyError, AssertionError, RuntimeError, OSError) as fault:
        traceback.print_exc()
        reason = str(fault).strip().splitlines() or [type(fault).__name__]
        raise ToolFailed(
            f"vLLM could not load the model: {reason[0]}",
            where=str(model),
            fix="check kv_pool_mib and max_model_len of the target; the log has the full message",
        ) from None
