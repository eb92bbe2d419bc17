"""Runs a program that dies with its parent.

``python -m trtpipe.core.attached_tool PARENT_PID PROGRAM ARGUMENT...``

The kernel's request to end it outlives the exec; what the program starts itself ends with its process group.
"""

from __future__ import annotations

import os
import sys

from trtpipe.core.worker import die_with_parent


def main(parent_pid: int, command: list[str]) -> None:
    die_with_parent()
    if os.getppid() == parent_pid:  # else it has died before it could be watched
        os.execvp(command[0], command)  # noqa: S606 - a list of words, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
