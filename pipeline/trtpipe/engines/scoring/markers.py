"""What a scoring script tells its caller: lines of its output that begin with these words.

This module stands alone, as ``positions`` does.
"""

from __future__ import annotations

import sys
from typing import NoReturn

PROGRESS, NOTE, REFUSAL = "trtpipe-progress", "trtpipe-note", "trtpipe-refusal"


def tell(kind: str, text: object) -> None:
    print(f"{kind} {text}", flush=True)


def refuse(text: str) -> NoReturn:
    """End the script with one line that its caller shows."""
    tell(REFUSAL, text)
    sys.exit(1)
