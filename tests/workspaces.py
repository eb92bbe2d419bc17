"""Workspaces for tests that run the installed command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
CHAIN_LIMIT_S = 3600
# Importing vLLM, as tests of it do, sets these for the whole process: one thread for everything it starts.
SET_BY_VLLM = {"OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"}


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found


def trtpipe(*arguments: str, folder: Path, limit_s: float = CHAIN_LIMIT_S) -> Result:
    """Run the installed command in a workspace."""
    program = Path(sys.executable).with_name("trtpipe")
    environment = {name: value for name, value in os.environ.items() if name not in SET_BY_VLLM}
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
    return Result(done.returncode, done.stdout, done.stderr)


POLICY = """\
why: the sample's limits, with room for half of its prompts
overall: {kl_top20_nats_max: 0.16, top1_agreement_min: 0.76, perplexity_ratio_max: 1.2}
per_segment: {kl_top20_nats_max: 0.26, top1_agreement_min: 0.7, perplexity_ratio_max: 1.32}
"""


def write_config(folder: Path) -> None:
    """Write a config like the embedded default's, with fewer prompts: a chain of minutes on a slow machine too."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "trtpipe.yaml").write_text(
        "model: sample\n"
        f"prompts:\n  files: [{REPOSITORY / 'calibration/prompts/sample.jsonl'}]\n"
        "  calibration_prompts: 40\n"
        "  heldout_prompts_per_segment: 24\n"
        f"target: {REPOSITORY / 'engines/local.yaml'}\n"
        "policy: policy.yaml\n"
        f"serving:\n  triton_environment: {REPOSITORY / '.venv-triton'}\n",
        encoding="utf-8",
    )
