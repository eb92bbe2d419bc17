"""No row of a table about TensorRT-LLM without the upstream file that it was read from."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from trtpipe.engines.trtllm import capability, families
from workspaces import REPOSITORY

FOLDER = REPOSITORY / "pipeline/trtpipe/engines/trtllm"
TABLES = sorted(FOLDER.rglob("*.toml"))
UPSTREAM = re.compile(r"^(tensorrt_llm|examples|cpp|docs)/[\w./{},-]+\.(py|h|cpp|cu|md)\b")


def rows(node: Any) -> list[dict[str, Any]]:
    """Return the tables with a name, at any depth."""
    if isinstance(node, list):
        return [row for part in node for row in rows(part)]
    if isinstance(node, dict):
        own = [node] if "name" in node else []
        return own + [row for part in node.values() for row in rows(part)]
    return []


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_no_row_of_a_table_lacks_its_source(path: Any) -> None:
    found = rows(tomllib.loads(path.read_text("utf-8")))
    assert len(found) > 20
    for row in found:
        for source in row["source"].split("; "):
            assert UPSTREAM.match(source), row


def test_the_tables_are_these() -> None:
    assert [path.name for path in TABLES] == ["arguments.toml", "checkpoint.toml", "scripts.toml", "engine_config.toml"]


def test_no_capability_and_no_family_lacks_its_source() -> None:
    for version, found in capability.CAPABILITIES.items():
        for row in found:
            assert re.search(r"T:[\w./{},-]+\.(py|cpp|md)\b", row.source), (version, row)
    for mode in capability.SPECULATIONS["1.2.1"]:
        assert mode.mode == "none" or re.search(r"\.(py|md)\b", mode.source), mode
    for family in families.FAMILIES:
        assert re.search(r"\.md\b", family.source), family
