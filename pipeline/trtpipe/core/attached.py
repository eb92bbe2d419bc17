"""Runs a worker's module that dies with its parent from its first moment on.

``python -m trtpipe.core.attached PARENT_PID MODULE``

Its imports come before ``worker.serve``, and on a busy machine torch and vLLM take a minute to import.
"""

from __future__ import annotations

import os
import runpy
import sys

from trtpipe.core.worker import die_with_parent


def main(parent_pid: int, module: str) -> None:
    die_with_parent()
    if os.getppid() == parent_pid:  # else it has died before it could be watched
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
