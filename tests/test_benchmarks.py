"""The page of measurements says what the result files say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_tables_are_those_of_the_results() -> None:
    printed = subprocess.run([sys.executable, BENCHMARKS / "tables.py"], capture_output=True, text=True, check=True)
    assert (BENCHMARKS / "README.md").read_text("utf-8") == printed.stdout.rstrip("\n") + "\n"
