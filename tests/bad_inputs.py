"""One row of the table of bad inputs: the command, its exit code and what it says, alike on every machine."""

from __future__ import annotations

import re
from pathlib import Path

FROM_RUN_TO_RUN = (
    (r"-[0-9a-f]{16}/", "-KEY/"),
    (r"process \d+(, since \S+)?", "process PID"),
    (r"process PID \(\S+\)", "process PID (NAME)"),
    (r"port \d+", "port PORT"),
    (r"(?m)^  \| .*\n", ""),  # the last lines of a log
)


def row(command: str, code: int, said: str, folder: Path) -> str:
    """Return the row; ``said``: all of standard error, of which the part from the first error on is shown."""
    text = said[said.index("error: ") :].replace(str(folder), "")
    for pattern, word in FROM_RUN_TO_RUN:
        text = re.sub(pattern, word, text)
    return f"trtpipe {command} -> exit code {code}\n{text}"
