"""``trtpipe serve``."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    import socket

    from trtpipe.chain.serving import Serving
    from trtpipe.core.artifacts import Artifact
    from trtpipe.front.settings import Served
    from trtpipe.triton_repo.server import Server

OPEN = (
    "Triton answers everybody who reaches {host}: it asks for no API key and its metrics are open too (serving.host); "
    "127.0.0.1 leaves the way in to the front"
)


@click.command(short_help="Serve the current release with Triton.")
@click.option("--front-port", type=click.IntRange(1, 65535), help="Port of the OpenAI-compatible front.")
@click.option("--no-front", is_flag=True, help="Start Triton alone.")
@click.option("--follow", is_flag=True, help="Go over to each release that becomes current; the front drops nothing.")
@common
def serve(options: Options, front_port: int | None, *, no_front: bool, follow: bool) -> None:
    """Serve the current release on this machine until Ctrl-C or SIGTERM.

    Triton, and before it an OpenAI-compatible front, which asks for the key in the environment variable
    TRTPIPE_API_KEY if that is set. A release of TensorRT-LLM is served where its lock allows it to run, by Triton's own
    backend, one process a GPU.

    With --follow, `trtpipe promote` and `trtpipe rollback` start the other release beside this one, on ports of its
    own; once it has answered, the front's new requests go to it, and this one ends after its last.

    Example: trtpipe serve --front-port 9001
    """
    from trtpipe.chain import fronted, servable
    from trtpipe.chain.serving import Serving
    from trtpipe.core import ports
    from trtpipe.core.store import Store
    from trtpipe.front import server as front
    from trtpipe.release.current import require_current
    from trtpipe.triton_repo import server

    if follow and no_front:
        raise UsageFault("only the front can go over", where="--follow --no-front", fix="give one of them")
    space = options.workspace()
    if not fronted.is_local(space.config.serving.host):
        with options.console() as console:
            console.note(OPEN.format(host=space.config.serving.host))
    store = Store(space.root)
    release = require_current(store)
    with options.console() as console:
        servable.require(release, console.note)
        serving = Serving(space, store, os.environ.get(fronted.API_KEY), console.note)
        addresses, listening = serving.addresses, space.config.serving
        if not no_front:
            port = front_port or listening.front_port
            used = [addresses, serving.second] if follow else [addresses]
            if any(port in each.by_purpose.values() for each in used):
                raise UsageFault(f"{port} is a port of Triton's", where="--front-port", fix="choose another port")
            served = serving.served(release, addresses)
            ports.require_free(listening.front_host, {"front": port})
            taken = front.bind(listening.front_host, port)
        console.stage("serve", f"release {release.id}; loading, log in {serving.log(addresses)}")
        if no_front:
            with serving.start(release, addresses) as running:
                _say_ready(options, release.id, running)
                server.wait(running)
        else:
            _with_front(options, serving, release, served, taken, follow=follow)


def _with_front(
    options: Options, serving: Serving, release: Artifact, served: Served, taken: socket.socket, *, follow: bool
) -> None:
    """Serve until the end is asked for. Raises ToolFailed where Triton ends by itself."""
    from trtpipe.chain.following import Following, held
    from trtpipe.core import hosts
    from trtpipe.front import app
    from trtpipe.front import server as front
    from trtpipe.triton_repo import server

    gate, addresses = app.build(served), serving.addresses
    url = hosts.url("http", serving.space.config.serving.front_host, taken.getsockname()[1]) + "/v1"
    log = serving.store.state / "logs" / "front.log"
    run = partial(front.run, gate, taken, drain_s=served.limits.drain_s, log=log)
    if follow:
        go_over = partial(gate.backends.go_over, limit_s=served.limits.request_s + app.BODY_S)
        both = (addresses, serving.second)
        following = Following(serving.store, serving.start, both, serving.served, go_over, serving.note)
        with held(serving.start, release, addresses) as first:
            ready = partial(_say_ready, options, release.id, first.server.result(), url)
            run(on_ready=ready, until=partial(following.run, first))
    else:
        with serving.start(release, addresses) as running:
            ready = partial(_say_ready, options, release.id, running, url)
            run(on_ready=ready, until=lambda: front.ended(lambda: running.supervisor.poll() is not None))
            server.wait(running)


def _say_ready(options: Options, release: str, running: Server, front_url: str | None = None) -> None:
    addresses = running.addresses
    document = {"release": release, "http": addresses.http_url, "metrics": addresses.metrics_url, "openai": front_url}
    front = f"{front_url} (OpenAI), " if front_url else ""
    options.result(
        document,
        f"release {release} is ready after {running.seconds_to_ready:.0f} s: {front}{addresses.http_url} (HTTP),"
        f" {addresses.grpc_url} (gRPC), {addresses.metrics_url}; Ctrl-C ends it",
    )
