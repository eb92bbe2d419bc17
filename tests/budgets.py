"""How long each test file may take on two quiet cores; a run fails where one takes three times as long.

A file that needs more than the default says so here, where a reviewer sees it. Session fixtures count for the file
that needs them first: for the end-to-end tests that is a whole chain.
"""

from __future__ import annotations

from collections.abc import Mapping

BUSY_MACHINE = 3
DEFAULT_S = 5
BUDGET_S = {}


def exceeded(seconds: Mapping[str, float]) -> list[str]:
    """Return a line for each file (path below tests/) over three times its budget."""
    return [
        f"{file}: {taken:.1f} s, the budget is {BUDGET_S.get(file, DEFAULT_S)} s (tests/budgets.py)"
        for file, taken in sorted(seconds.items())
        if taken > BUSY_MACHINE * BUDGET_S.get(file, DEFAULT_S)
    ]
