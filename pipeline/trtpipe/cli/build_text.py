"""The lines of a build as a person reads and pastes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from trtpipe.chain.trtllm_engine import in_container
from trtpipe.cli.plan_text import findings_text, heading

if TYPE_CHECKING:
    from trtpipe.chain.trtllm_engine import Foretold

GIB = 1 << 30


def text(foretold: Foretold) -> str:
    findings = (*foretold.planned.plan.findings, *foretold.findings)
    lines = [*heading(foretold.planned), *findings_text(findings)]
    for number, line in enumerate(foretold.lines, 1):
        lines += ["", f"# {number}. {line.purpose}", *_pasted(line.words)]
    image = foretold.planned.plan.target.container_image
    pin = (
        "" if "@sha256:" in image else " (a tag can come to mean other bytes; container_image: NAME@sha256:... pins it)"
    )
    lines += [
        "",
        f"Without TensorRT-LLM on the host, before the last line{pin}:",
        f"  {in_container(foretold)}",
        f"Each worker takes about {foretold.worker_bytes / GIB:.0f} GiB of host memory (an estimate).",
    ]
    return "\n".join(lines)


def _pasted(words: list[str]) -> Iterator[str]:
    """Yield a command with an option a line, as a shell takes it."""
    starts = [index for index, word in enumerate(words) if index and word.startswith("--")] + [len(words)]
    first = shlex.join(words[: starts[0]])
    parts = [shlex.join(words[start:end]) for start, end in pairwise(starts)]
    yield " \\\n    ".join([first, *parts])
