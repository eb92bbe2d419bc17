"""``trtpipe ask``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import ConfigError, UsageFault

if TYPE_CHECKING:
    from trtpipe.triton_repo.exchange import Model


@click.command(short_help="Ask the served model.")
@click.argument("prompt", required=False)
@click.option(
    "--chat",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON file of a conversation instead of a prompt: the messages, or an object that holds them.",
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
    max_tokens: int,
    model: Model,
    *,
    stream: bool,
    grpc: bool,
) -> None:
    """Ask the model that `trtpipe serve` serves; the answer goes to standard output.

    Example: trtpipe ask "Translate to French: Where is the station?"
    """
    from trtpipe.triton_repo import client

    if (prompt is None) == (chat is None):
        raise UsageFault("give a prompt or --chat, one of them", where="trtpipe ask", fix="trtpipe ask --help")
    serving = options.workspace().config.serving
    shown = stream and not options.as_json
    answer = client.ask(
        f"grpc://{serving.host}:{serving.grpc_port}" if grpc else f"http://{serving.host}:{serving.http_port}",
        _messages(chat) if chat else prompt or "",
        max_tokens=max_tokens,
        model=model,
        stream=stream,
        on_chunk=lambda text: click.echo(text, nl=False) if shown else None,
    )
    document = {
        "text": answer.text,
        "chunks": answer.chunks,
        "first_chunk_s": round(answer.first_chunk_s, 3),
        "seconds": round(answer.seconds, 3),
    }
    options.result(document, "" if shown else answer.text)


def _messages(path: Path) -> list[dict[str, str]]:
    """Read a conversation. Raises ConfigError with the place of the first fault."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as fault:
        raise ConfigError(
            f"no JSON: {fault.msg}", where=f"{path}:{fault.lineno}:{fault.colno}", fix="correct the file"
        ) from None
    except UnicodeDecodeError as fault:
        raise ConfigError(
            f"not UTF-8: {fault.reason}", where=f"{path}, byte {fault.start}", fix="save it as UTF-8"
        ) from None
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
