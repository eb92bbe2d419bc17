"""Golden files: compared in every run, rewritten with ``pytest --rewrite-golden``. A time budget for each file."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets import exceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

GOLDEN = Path(__file__).parent / "golden"
SECONDS = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SECONDS] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Add a test's time, its fixtures included, to that of its file."""
    started = time.monotonic()
    try:
        return (yield)
    finally:
        file = item.path.relative_to(Path(__file__).parent).as_posix()
        item.config.stash[SECONDS][file] += time.monotonic() - started


def pytest_sessionfinish(session: pytest.Session) -> None:
    if exceeded(session.config.stash[SECONDS]) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in exceeded(config.stash[SECONDS]):
        terminalreporter.write_line(f"TOO SLOW {line}", red=True)


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
