"""``trtpipe serve``."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from trtpipe.triton_repo.server import Server


@click.command(short_help="Serve the current release with Triton.")
@click.option("--front-port", type=click.IntRange(1, 65535), help="Port of the OpenAI-compatible front.")
@click.option("--no-front", is_flag=True, help="Start Triton alone.")
@common
def serve(options: Options, front_port: int | None, *, no_front: bool) -> None:
    """Serve the current release on this machine until Ctrl-C or SIGTERM.

    Triton, and before it an OpenAI-compatible front, which asks for the key in the environment variable
    TRTPIPE_API_KEY if that is set. A release of TensorRT-LLM is served where its lock allows it to run, by Triton's own
    backend, one process a GPU.

    Example: trtpipe serve --front-port 9001
    """
    from trtpipe.chain import fronted, released, servable
    from trtpipe.core import hosts, ports
    from trtpipe.core.store import Store
    from trtpipe.front import app
    from trtpipe.front import server as front
    from trtpipe.release.current import require_current
    from trtpipe.triton_repo import server

    space = options.workspace()
    store = Store(space.root)
    release = require_current(store)
    servable.require(release)
    serving = space.config.serving
    addresses = server.Addresses(serving.host, serving.http_port, serving.grpc_port, serving.metrics_port)
    port = front_port or serving.front_port
    if not no_front:
        if port in addresses.by_purpose.values():
            raise UsageFault(f"{port} is a port of Triton's", where="--front-port", fix="choose another port")
        served = fronted.served(space, release, addresses.http_url, os.environ.get(fronted.API_KEY))
        ports.require_free(serving.front_host, {"front": port})
        taken = front.bind(serving.front_host, port)
    log = store.state / "logs" / "serve.log"
    front_log = log.with_name("front.log")
    with options.console() as console:
        console.stage("serve", f"release {release.id}; loading, log in {log}")
        with released.running(space, release, addresses, state=store.state, log=log, note=console.note) as running:
            say_ready = partial(_say_ready, options, release.id, running)
            if no_front:
                say_ready(None)
            else:
                front.run(
                    app.build(served),
                    taken,
                    drain_s=served.limits.drain_s,
                    log=front_log,
                    on_ready=lambda: say_ready(hosts.url("http", serving.front_host, port) + "/v1"),
                    has_ended=lambda: running.supervisor.poll() is not None,
                )
            server.wait(running)


def _say_ready(options: Options, release: str, running: Server, front_url: str | None) -> None:
    addresses = running.addresses
    document = {"release": release, "http": addresses.http_url, "metrics": addresses.metrics_url, "openai": front_url}
    front = f"{front_url} (OpenAI), " if front_url else ""
    options.result(
        document,
        f"release {release} is ready after {running.seconds_to_ready:.0f} s: {front}{addresses.http_url} (HTTP),"
        f" {addresses.grpc_url} (gRPC), {addresses.metrics_url}; Ctrl-C ends it",
    )
