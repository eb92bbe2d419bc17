"""Golden files: compared in every run, rewritten with ``pytest --rewrite-golden``. Time budgets: see ``budgets``."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import budgets

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

# Read when torch is first imported: waiting threads that spin starve each other where cores are shared.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

GOLDEN = Path(__file__).parent / "golden"
SPENT_S = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``tests/golden/<name>``."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: pytest --rewrite-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SPENT_S] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.config.stash[SPENT_S][item.nodeid.partition("::")[0]] += report.duration
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    over = budgets.overruns(session.config.stash[SPENT_S])
    if over and session.exitstatus == pytest.ExitCode.OK and not budgets.machine_is_busy():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if over := budgets.overruns(config.stash[SPENT_S]):
        busy = budgets.machine_is_busy()
        terminalreporter.section("over the time budget" + (" on a busy machine: no failure" if busy else ""))
        terminalreporter.write_line("\n".join(over))
