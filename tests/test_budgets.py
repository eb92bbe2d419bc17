"""The time budgets: the table names files that exist, and a run with a file that overruns its budget fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import budgets
from workspaces import REPOSITORY

pytest_plugins = ["pytester"]

SLOW = "import time\n\ndef test_it():\n    time.sleep(0.05)\n"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A test file that takes 0.05 s, with no budget of its own, on a quiet machine."""
    pytester.makeconftest((REPOSITORY / "tests/conftest.py").read_text("utf-8"))
    pytester.makepyfile(test_slow=SLOW)
    monkeypatch.setattr(budgets, "BUDGETS_S", {})
    monkeypatch.setattr(budgets, "machine_is_busy", lambda: False)
    return pytester


def test_a_file_within_its_budget_passes(run: pytest.Pytester) -> None:
    assert run.runpytest_inprocess().ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("busy", "status"), [(False, pytest.ExitCode.TESTS_FAILED), (True, pytest.ExitCode.OK)], ids=["quiet", "busy"]
)
def test_a_file_that_overruns_fails_the_run(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, busy: bool, status: pytest.ExitCode
) -> None:
    budgets.BUDGETS_S["test_slow.py"] = 0.01
    monkeypatch.setattr(budgets, "machine_is_busy", lambda: busy)
    result = run.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    assert result.ret == status
    result.stdout.fnmatch_lines(["test_slow.py: 0.? s, more than 3 times its budget of 0.01 s"])


def test_a_machine_is_busy_when_processes_wait_for_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0))
    for processes_per_core, busy in ((1.9, False), (2.1, True)):
        monkeypatch.setattr(os, "getloadavg", lambda load=processes_per_core * cores: (0.0, load, 0.0))
        assert budgets.machine_is_busy() == busy


def test_every_budget_is_of_a_file_and_longer_than_the_usual() -> None:
    for name, seconds in budgets.BUDGETS_S.items():
        assert Path(REPOSITORY, name).is_file()
        assert seconds > budgets.USUAL_S, f"{name} needs no row of its own"
