"""The front's log, for tests: a line is written after its client has got the answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


def lines(path: Path, count: int, request_id: str = "") -> list[dict[str, Any]]:
    """Return ``count`` lines once they are there, those of one request if it is named."""
    deadline = time.monotonic() + 20
    while True:
        written = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
        found = [line for line in written if request_id in ("", line["request_id"])]
        if len(found) == count:
            return found
        assert time.monotonic() < deadline, f"{len(found)} lines, not {count}"
        time.sleep(0.05)
