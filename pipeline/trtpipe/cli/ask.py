"""``trtpipe ask``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import ConfigError, ToolFailed, UsageFault

if TYPE_CHECKING:
    from trtpipe.triton_repo.exchange import Model
    from trtpipe.triton_repo.exchange import Options as Inputs


@click.command(short_help="Ask the served model.")
@click.argument("prompt", required=False)
@click.option(
    "--chat",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON file of a conversation instead of a prompt: the messages, or an object that holds them.",
)
@click.option(
    "--json-schema",
    "schema",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON schema that the answer must keep.",
)
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True, help="Longest answer.")
@click.option("--stream/--no-stream", default=True, show_default=True, help="Show the answer while it comes.")
@click.option("--grpc", is_flag=True, help="Ask over gRPC instead of HTTP.")
@click.option(
    "--model",
    type=click.Choice(["ensemble", "tensorrt_llm_bls"]),
    default="ensemble",
    show_default=True,
    help="Which of the two equal ways through the models; only tensorrt_llm_bls passes a cancellation on.",
)
@common
def ask(
    options: Options,
    prompt: str | None,
    chat: Path | None,
    schema: Path | None,
    max_tokens: int,
    model: Model,
    *,
    stream: bool,
    grpc: bool,
) -> None:
    """Ask the model that `trtpipe serve` serves; the answer goes to standard output.

    A prompt that begins with a dash comes after `--`: trtpipe ask --max-tokens 8 -- "-5 + 3 = "

    Example: trtpipe ask "Translate to French: Where is the station?"
    """
    from trtpipe.core import hosts
    from trtpipe.triton_repo import client

    if (prompt is None) == (chat is None):
        raise UsageFault("give a prompt or --chat, one of them", where="trtpipe ask", fix="trtpipe ask --help")
    serving = options.workspace().config.serving
    scheme, port = ("grpc", serving.grpc_port) if grpc else ("http", serving.http_port)
    shown = stream and not options.as_json
    answer = client.ask(
        hosts.url(scheme, serving.host, port),
        _messages(chat) if chat else prompt or "",
        max_tokens=max_tokens,
        model=model,
        stream=stream,
        options=_guided_by(schema) if schema else None,
        on_chunk=lambda text: click.echo(text, nl=False) if shown else None,
    )
    document = {
        "text": answer.text,
        "chunks": answer.chunks,
        "first_chunk_s": round(answer.first_chunk_s, 3),
        "seconds": round(answer.seconds, 3),
    }
    if schema and not _is_json(answer.text):
        if shown:
            click.echo()
        # No schema can keep an answer from being cut.
        raise ToolFailed(
            "the answer is no whole JSON document" + ("" if shown else f": {answer.text}"),
            where="trtpipe ask --json-schema",
            fix=f"where it was cut after {max_tokens} tokens, raise --max-tokens, or let the schema allow less "
            "(maxLength, maxItems)",
        )
    options.result(document, "" if shown else answer.text)


def _guided_by(path: Path) -> Inputs:
    """Return what makes the engine keep a schema. Raises ConfigError."""
    schema = _document(path)
    if not isinstance(schema, dict):
        raise ConfigError(
            "a JSON schema is an object", where=str(path), fix='write one, such as {"type": "object", "properties": {}}'
        )
    return {"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": json.dumps(schema)}


def _is_json(answer: str) -> bool:
    try:
        json.loads(answer)
    except ValueError:
        return False
    return True


def _document(path: Path) -> Any:
    """Read a JSON file. Raises ConfigError with the place of the fault."""
    try:
        return json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as fault:
        raise ConfigError(
            f"no JSON: {fault.msg}", where=f"{path}:{fault.lineno}:{fault.colno}", fix="correct the file"
        ) from None
    except UnicodeDecodeError as fault:
        raise ConfigError(
            f"not UTF-8: {fault.reason}", where=f"{path}, byte {fault.start}", fix="save it as UTF-8"
        ) from None


def _messages(path: Path) -> list[dict[str, str]]:
    """Read a conversation. Raises ConfigError with the place of the first fault."""
    document = _document(path)
    messages = document.get("messages") if isinstance(document, dict) else document
    fix = 'write [{"role": "user", "content": "..."}], or {"messages": [...]}'
    if not isinstance(messages, list) or not messages:
        raise ConfigError("there are no messages", where=str(path), fix=fix)
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise ConfigError(
                "a message must have the texts `role` and `content`", where=f"{path}: messages[{index}]", fix=fix
            )
    return messages
