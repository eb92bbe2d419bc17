"""Every command explains itself, at once, in the words of the golden files."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from trtpipe.cli import COMMANDS, trtpipe

if TYPE_CHECKING:
    from collections.abc import Callable

HELP_LIMIT_S = 0.15
HEAVY = ("torch", "transformers", "vllm", "tensorrt_llm", "numpy", "pydantic", "tokenizers", "tritonclient", "rich")
ARGUMENTS = [["--help"], *([name, "--help"] for name in COMMANDS)]

LOADED = """
import json, sys
from trtpipe.cli import trtpipe
trtpipe.main(sys.argv[1:], prog_name="trtpipe", standalone_mode=False)
print(json.dumps([name for name in sys.modules if "." not in name]))
"""


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_the_help_text(arguments: list[str], golden: Callable[[str, str], None]) -> None:
    result = CliRunner().invoke(trtpipe, arguments, prog_name="trtpipe", terminal_width=80)
    assert result.exit_code == 0, result.output
    name = "trtpipe" if len(arguments) == 1 else arguments[0]
    golden(f"help/{name}.txt", result.output)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_the_common_options(name: str) -> None:
    text = CliRunner().invoke(trtpipe, [name, "-h"], prog_name="trtpipe").output
    assert f"Example: trtpipe {name}" in text
    for option in ("--config", "--set", "--json", "--quiet", "--verbose", "--help"):
        assert option in text


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "click" in loaded
    assert not set(loaded) & set(HEAVY)


def test_help_answers_at_once() -> None:
    def seconds() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "trtpipe", "--help"], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    assert min(seconds() for _ in range(25)) < HELP_LIMIT_S
