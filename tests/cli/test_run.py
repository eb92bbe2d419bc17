"""``trtpipe run`` beside the chain itself: what it leaves where it does not get to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins import triton_environment
from tiny_chain import hollow_model, write_config, write_prompts
from trtpipe.cli.outcome import REPORT
from trtpipe.core.store import Store
from workspaces import trtpipe

if TYPE_CHECKING:
    from pathlib import Path


def test_a_refused_run_leaves_no_report_of_an_earlier_one(tmp_path: Path) -> None:
    model = hollow_model(tmp_path / "model")
    write_config(tmp_path, model=model, prompts=write_prompts(tmp_path / "prompts.jsonl", rows=0))
    triton_environment.install(tmp_path / ".venv-triton")
    report = Store(tmp_path).state / REPORT
    report.parent.mkdir()
    report.write_text("an earlier run")
    assert trtpipe("run", "--dry-run", folder=tmp_path).code == 0
    assert report.exists()
    assert trtpipe("run", "-q", folder=tmp_path).code == 3
    assert not report.exists()
