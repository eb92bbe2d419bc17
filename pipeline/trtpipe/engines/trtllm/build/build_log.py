"""Progress and figures from the log of `trtllm-build`.

Lines of `tensorrt_llm/builder.py` and `commands/build.py`; as seen in the log of TensorRT-LLM issue 2324.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtpipe.core.progress import Reporter

# Each rank writes each of these once; the last that has begun is what is shown.
STEPS = (
    (re.compile(r"Total time of constructing network from module object"), "networks constructed"),
    (re.compile(r"Engine generation completed in"), "engines compiled"),
    (re.compile(r"Engine serialized\. Total time"), "ranks written"),
)
PEAK = re.compile(r"Build phase peak memory: ([0-9.]+) MB")
# What TensorRT-LLM prints when it is imported (tensorrt_llm/__init__.py).
VERSION = re.compile(r"\[TensorRT-LLM\] TensorRT-LLM version: (.+)$")
WARNING = re.compile(r"\[TRT-LLM\].*?\[W\] (.+)$")


@dataclass
class BuildLog:
    """Takes lines as they come.

    ``warnings``: what the builder said it changed, each once; ``version``: what it said it is.
    """

    ranks: int
    reporter: Reporter
    counts: list[int] = field(default_factory=lambda: [0] * len(STEPS))
    peak_host_mib: float | None = None
    warnings: list[str] = field(default_factory=list)
    version: str | None = None

    def take(self, line: str) -> None:
        for number, (pattern, label) in enumerate(STEPS):
            if pattern.search(line):
                self.counts[number] += 1
                if not any(self.counts[number + 1 :]) or number + 1 == len(STEPS):
                    self.reporter.progress(label, self.counts[number], self.ranks)
        if found := PEAK.search(line):
            # upstream divides by 1024 twice and writes MB
            self.peak_host_mib = max(self.peak_host_mib or 0.0, float(found[1]))
        if told := VERSION.search(line):
            self.version = told[1].strip()
        if (said := WARNING.search(line)) and said[1] not in self.warnings:
            self.warnings.append(said[1])

    def figures(self) -> dict[str, Any]:
        return {
            "peak_host_mib_of_a_rank": self.peak_host_mib,
            "builder_warnings": self.warnings,
            "builder_reported": self.version,
        }
