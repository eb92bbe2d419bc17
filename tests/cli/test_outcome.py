"""The reports that a run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from report import synthetic
from trtpipe.cli import outcome
from trtpipe.core.artifacts import Artifact
from trtpipe.core.runner import Outcome
from trtpipe.core.store import Store
from trtpipe.errors import GateRejected


def finished(folder: Path, word: str) -> tuple[list[Outcome], Artifact]:
    outcomes = synthetic.outcomes(folder)
    verdict = outcomes[-1].artifact
    verdict.path.mkdir(parents=True)
    (verdict.path / "verdict.json").write_text(json.dumps(synthetic.verdict(outcome=word)))
    (folder / ".trtpipe").mkdir()
    return outcomes, verdict


@pytest.mark.parametrize(("word", "command"), [("pass", "trtpipe serve"), ("fail", "trtpipe status")])
def test_the_overview_lies_in_the_workspace_and_says_what_to_do_next(tmp_path: Path, word: str, command: str) -> None:
    outcomes, verdict = finished(tmp_path, word)
    path = outcome.write_report(Store(tmp_path), outcomes, verdict)
    assert path == tmp_path / ".trtpipe" / "report.html"
    page = path.read_text("utf-8")
    assert f"<code>{command}</code>" in page
    assert str(tmp_path) not in page


def test_the_closing_text_names_both_reports(tmp_path: Path) -> None:
    outcomes, verdict = finished(tmp_path, "pass")
    text = outcome.table(outcomes, verdict, outcomes[2].artifact, tmp_path / "report.html", changed=True)
    assert f"drift report: {verdict.path / 'verdict.html'}" in text
    assert f"run overview: {tmp_path / 'report.html'}" in text


def test_a_rejection_names_the_drift_report(tmp_path: Path) -> None:
    _, verdict = finished(tmp_path, "fail")
    with pytest.raises(GateRejected) as caught:
        outcome.require_pass(verdict)
    assert "verdict.html" in (caught.value.fix or "")
