"""`trtpipe ask` against a stand-in for Triton."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from stand_in_triton import StandIn, stand_in_triton
from trtpipe.cli import trtpipe
from trtpipe.errors import ConfigError, ToolFailed, UsageFault
from workspaces import write_config

if TYPE_CHECKING:
    from click.testing import Result

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Höflich?"}]


@pytest.fixture
def triton() -> Iterator[StandIn]:
    with stand_in_triton() as triton:
        triton.say("Yes", ", please")
        yield triton


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(triton: StandIn, *arguments: str) -> Result:
    port = triton.url.rsplit(":", 1)[1]
    return CliRunner().invoke(trtpipe, ["ask", "--set", f"serving.http_port={port}", *arguments])


@pytest.mark.parametrize("document", [MESSAGES, {"messages": MESSAGES}])
def test_a_conversation_is_asked_as_it_is_written(triton: StandIn, folder: Path, document: object) -> None:
    (folder / "chat.json").write_text(json.dumps(document), "utf-8")

    result = ask(triton, "--chat", "chat.json", "--max-tokens", "7")

    assert result.stdout == "Yes, please\n"
    assert json.loads(triton.bodies[0]["text_input"]) == {"messages": MESSAGES}
    assert triton.bodies[0]["max_tokens"] == 7


def test_the_answer_as_a_document(triton: StandIn, folder: Path) -> None:
    document = json.loads(ask(triton, "Hello", "--json").stdout)
    assert (document["text"], document["chunks"]) == ("Yes, please", 2)


@pytest.mark.parametrize("prompt", ["--json", "-5 + 3 = ", "--", "--help"])
def test_a_prompt_behind_two_dashes_is_asked_as_it_is(triton: StandIn, folder: Path, prompt: str) -> None:
    assert ask(triton, "--", prompt).stdout == "Yes, please\n"
    assert triton.bodies[0]["text_input"] == prompt


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_a_schema_guides_the_answer(triton: StandIn, folder: Path) -> None:
    (folder / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    triton.say('{"name": ', '"Ada"}')

    result = ask(triton, "Who?", "--json-schema", "schema.json")

    assert result.stdout == '{"name": "Ada"}\n'
    assert triton.bodies[0]["guided_decoding_guide_type"] == "json_schema"
    assert json.loads(triton.bodies[0]["guided_decoding_guide"]) == SCHEMA


def test_a_cut_document_is_no_answer(triton: StandIn, folder: Path) -> None:
    (folder / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    triton.say('{"name": ')

    result = ask(triton, "Who?", "--json-schema", "schema.json", "--max-tokens", "3")

    assert isinstance(result.exception, ToolFailed)
    assert "cut after 3 tokens" in result.exception.fix
    assert result.stdout == '{"name": \n'


@pytest.mark.parametrize(("content", "what"), [(b"[]", "a JSON schema is an object"), (b'{"a":', "no JSON")])
def test_a_bad_schema_is_refused(triton: StandIn, folder: Path, content: bytes, what: str) -> None:
    (folder / "schema.json").write_bytes(content)

    fault = ask(triton, "Who?", "--json-schema", "schema.json").exception

    assert isinstance(fault, ConfigError)
    assert what in fault.what
    assert not triton.bodies


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        (b'[\n{"role": }', "no JSON", "chat.json:2:10"),
        (b"[\xff]", "not UTF-8", "byte 1"),
        (b"{}", "no messages", "chat.json"),
        (b"[]", "no messages", "chat.json"),
        (b'[{"role": "user", "content": "a"}, {"role": "user"}]', "must have the texts", "messages[1]"),
    ],
)
def test_a_bad_conversation_is_refused_with_its_place(
    triton: StandIn, folder: Path, content: bytes, what: str, where: str
) -> None:
    (folder / "chat.json").write_bytes(content)

    fault = ask(triton, "--chat", "chat.json").exception

    assert isinstance(fault, ConfigError)
    assert what in fault.what
    assert where in (fault.where or "")
    assert not triton.bodies


@pytest.mark.parametrize("arguments", [[], ["Hello", "--chat", "trtpipe.yaml"]])
def test_a_prompt_or_a_conversation_not_both(triton: StandIn, folder: Path, arguments: list[str]) -> None:
    assert isinstance(ask(triton, *arguments).exception, UsageFault)
