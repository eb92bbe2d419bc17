"""The files of a release's ``launch`` folder, from the engine's mapping, the target and the lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import trtpipe
from trtpipe.engines.trtllm.launch import compose, guide, kubernetes, serving, systemd
from trtpipe.engines.trtllm.launch.line import Ports

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.built.lock import Lock

START = "start"  # a file: of a folder that it runs, Python keeps the bytecode before the first line could forbid it
PACKAGE = Path(trtpipe.__file__).parent
BEGINNING = '''"""Start a release: `python3 launch/start RELEASE` (`--help` says more)."""

import os
import sys

# A release stays byte for byte what its record says: here, in what this starts and in Triton's Python models.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

from trtpipe.engines.trtllm.launch.__main__ import main

sys.exit(main())
'''
# What that imports. None of them needs more than the standard library.
CARRIED = (
    "__init__.py", "errors.py",
    *(f"core/{name}.py" for name in ("__init__", "hosts", "ports", "process", "reproduction")),
    "engines/__init__.py",
    *(f"engines/trtllm/{name}.py" for name in ("__init__", "findings")),
    *(f"engines/trtllm/build/{name}.py" for name in ("__init__", "gpu_query", "releases")),
    *(f"engines/trtllm/built/{name}.py" for name in ("__init__", "folder", "lock_rules")),
    *(f"engines/trtllm/launch/{name}.py"
      for name in ("__init__", "__main__", "checks", "line", "machine", "rank_log", "ranks", "watch")),
)  # fmt: skip


def files(engine: Path, target: TensorrtLlmTarget, lock: Lock, ports: Ports | None = None) -> dict[str, str]:
    """Return the text of each file, by its path within ``launch``.

    ``ports``: of the host, where compose.yaml shows the server; upstream's by default. Raises ConfigError where the
    engine is not whole.
    """
    said = serving.of(engine, target, lock, ports or Ports())
    return {
        "README.md": guide.text(said),
        compose.FILE: _yaml(compose.document(said)),
        "kubernetes.yaml": _yaml(*kubernetes.documents(said)),
        systemd.UNIT: systemd.text(),
        **code(),
    }


def code() -> dict[str, str]:
    """Return the text of what a release carries, the launcher and what it imports: it decides the release's bytes."""
    return {START: BEGINNING} | {f"trtpipe/{name}": (PACKAGE / name).read_text("utf-8") for name in CARRIED}


class _Plain(yaml.SafeDumper):
    """Writes a part that stands twice twice: anchors are no help to a reader."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(*documents: dict[str, Any]) -> str:
    text: str = yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=120)
    return text
