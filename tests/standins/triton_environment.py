"""STAND-IN for the Python environment that holds Triton, for tests: it looks right until something is started in it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path


def install(folder: Path) -> Path:
    """Write the environment: a Python that knows its one question, and the files that are looked for."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    answer = json.dumps([str(folder / "packages"), str(folder / "lib"), version])
    texts = {
        "bin/python": f"#!/bin/sh\necho {shlex.quote(answer)}\n",
        "packages/pytriton/tritonserver/bin/tritonserver": "#!/bin/sh\nexit 1\n",
        f"lib/libpython{version}.so.1.0": "",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder
