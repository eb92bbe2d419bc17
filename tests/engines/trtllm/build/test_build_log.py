"""The log of trtllm-build, in lines as a public log has them (TensorRT-LLM issue 2324)."""

from __future__ import annotations

from trtpipe.core.progress import Silent
from trtpipe.engines.trtllm.build.build_log import BuildLog

LINES = """\
[TensorRT-LLM] TensorRT-LLM version: 1.2.1
[10/12/2024-15:46:01] [TRT-LLM] [W] padding removal and fMHA are both enabled
[10/12/2024-15:46:16] [TRT] [I] Engine generation completed in 15.4544 seconds.
[10/12/2024-15:46:16] [TRT] [W] not the builder's own
[10/12/2024-15:46:23] [TRT-LLM] [I] Total time of building Unnamed Network 0: 00:00:22
[10/12/2024-15:46:23] [TRT-LLM] [I] Build phase peak memory: 40294.03 MB, children: 16.96 MB
[10/12/2024-15:46:42] [TRT-LLM] [I] Engine serialized. Total time: 00:00:19
[10/12/2024-15:46:43] [TRT-LLM] [MPI_Rank 1] [W] padding removal and fMHA are both enabled
[10/12/2024-15:46:43] [TRT-LLM] [I] Build phase peak memory: 12.00 MB, children: 16.96 MB
"""


class Shown(Silent):
    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []

    def progress(self, label: str, done: int, total: int) -> None:
        self.steps.append((label, done, total))


def test_progress_the_largest_peak_and_each_warning_once() -> None:
    shown = Shown()
    log = BuildLog(2, shown)
    for line in LINES.splitlines():
        log.take(line)
    assert shown.steps == [("engines compiled", 1, 2), ("ranks written", 1, 2)]
    assert log.figures() == {
        "peak_host_mib_of_a_rank": 40294.03,
        "builder_warnings": ["padding removal and fMHA are both enabled"],
        "builder_reported": "1.2.1",
    }
