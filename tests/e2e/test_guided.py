"""Answers that must look like something, from the real engine by every way."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from trtpipe.errors import ToolFailed
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo.server import Server
from workspaces import trtpipe

pytestmark = pytest.mark.e2e

PROMPT = "Where is the Louvre, and how many rivers cross that city?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "rivers": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["city", "rivers"],
    "additionalProperties": False,
}
ROUTES = list(product(exchange.MODELS, ("http", "grpc")))


def url(running: Server, scheme: str) -> str:
    addresses = running.addresses
    return addresses.http_url if scheme == "http" else addresses.grpc_url


def guided(guide_type: str, guide: str) -> dict[str, Any]:
    return {"guided_decoding_guide_type": guide_type, "guided_decoding_guide": guide}


@pytest.mark.parametrize(("model", "scheme"), ROUTES)
def test_an_answer_keeps_a_schema(running: Server, model: exchange.Model, scheme: str) -> None:
    """Sampled hot, so that only the schema can keep it in shape."""
    options = guided("json_schema", json.dumps(SCHEMA)) | {"temperature": 2.0, "top_p": 1.0, "seed": 5}
    text = client.ask(url(running, scheme), PROMPT, max_tokens=60, model=model, options=options).text

    found = json.loads(text)
    assert found.keys() == {"city", "rivers"}
    assert found["city"] in ("Paris", "Rome")
    assert found["rivers"] in range(10)


def test_a_streamed_answer_keeps_a_pattern_and_others_are_free(running: Server) -> None:
    options = guided("regex", "[0-9]{2}-[a-c]")
    text = client.ask(url(running, "http"), PROMPT, max_tokens=20, stream=True, options=options).text

    assert re.fullmatch("[0-9]{2}-[a-c]", text)
    assert not client.ask(url(running, "http"), PROMPT, max_tokens=8).text[:2].isdecimal()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (guided("json_schema", '{"type": "no such"}'), "schema"),
        (guided("json_schema", "{"), "JSON"),
        (guided("regex", "(["), "regex"),
        (guided("xml", "<a>"), "must be one of json, json_schema, regex, ebnf_grammar"),
        ({"guided_decoding_guide": "x"}, "needs a guided_decoding_guide_type"),
    ],
)
def test_a_guide_that_is_none_is_refused_in_words(running: Server, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolFailed, match=f"400: .*{words}"):
        client.ask(url(running, "http"), PROMPT, max_tokens=4, options=options)

    assert client.ask(url(running, "http"), PROMPT, max_tokens=1).chunks == 1


def test_a_document_from_the_command_line(running: Server, workspace: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA), "utf-8")
    port = f"serving.http_port={running.addresses.http_port}"

    result = trtpipe("ask", PROMPT, "--json-schema", str(schema), "--set", port, folder=workspace)

    assert result.code == 0, result.stderr
    assert json.loads(result.stdout)["city"] in ("Paris", "Rome")
