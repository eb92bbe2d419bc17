"""Which Python a console script runs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.engines.trtllm.build import probe, releases
from trtpipe.errors import EnvironmentUnfit


@pytest.mark.parametrize(
    ("head", "python"),
    [
        ("#!/opt/venv/bin/python3\nimport sys\n", "/opt/venv/bin/python3"),
        ("#!/usr/bin/env python3\nimport sys\n", "python3"),
        ("#!/bin/sh\n'''exec' \"/a/very/long/path/bin/python\" \"$0\" \"$@\"\n' '''\n", "/a/very/long/path/bin/python"),
    ],
)
def test_the_interpreter_of_a_console_script(tmp_path: Path, head: str, python: str) -> None:
    program = tmp_path / "trtllm-build"
    program.write_text(head)
    assert probe.interpreter_of(program) == python


def test_a_program_that_is_no_script_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "trtllm-build"
    program.write_bytes(b"\x7fELF")
    with pytest.raises(EnvironmentUnfit, match="not a Python console script"):
        probe.interpreter_of(program)


@pytest.mark.parametrize(
    ("version", "past"),
    [("1.2.1", False), ("0.21.0", False), ("1.3.0rc20", True), ("1.3.0", True), ("2.0.0", True), ("1.10.0", True)],
)
def test_from_1_3_on_there_are_no_engines(version: str, past: bool) -> None:
    assert releases.is_past_engines(version) is past
