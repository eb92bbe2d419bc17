"""``trtpipe ask``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common

if TYPE_CHECKING:
    from trtpipe.triton_repo.exchange import Model


@click.command(short_help="Ask the served model.")
@click.argument("prompt")
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
def ask(options: Options, prompt: str, max_tokens: int, model: Model, *, stream: bool, grpc: bool) -> None:
    """Ask the model that `trtpipe serve` serves; the answer goes to standard output.

    Example: trtpipe ask "Translate to French: Where is the station?"
    """
    from trtpipe.triton_repo import client

    serving = options.workspace().config.serving
    shown = stream and not options.as_json
    answer = client.ask(
        f"grpc://{serving.host}:{serving.grpc_port}" if grpc else f"http://{serving.host}:{serving.http_port}",
        prompt,
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
