"""``trtpipe serve``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Serve the current release with Triton.")
@common
def serve(options: Options) -> None:
    """Serve the current release with Triton on this machine until Ctrl-C or SIGTERM.

    Example: trtpipe serve --set serving.http_port=9000
    """
    from trtpipe.core.store import Store
    from trtpipe.release.current import require_current
    from trtpipe.triton_repo import server

    space = options.workspace()
    store = Store(space.root)
    release = require_current(store)
    serving = space.config.serving
    addresses = server.Addresses(serving.host, serving.http_port, serving.grpc_port, serving.metrics_port)
    log = store.state / "logs" / "serve.log"
    with options.console() as console:
        console.stage("serve", f"release {release.id}; loading, log in {log}")
        with server.running(
            release.path,
            space.resolve(serving.triton_environment),
            addresses,
            state=store.state,
            log=log,
            ready_timeout_s=serving.ready_timeout_s,
        ) as running:
            document = {"release": release.id, "http": addresses.http_url, "metrics": addresses.metrics_url}
            options.result(
                document,
                f"release {release.id} is ready after {running.seconds_to_ready:.0f} s: {addresses.http_url} (HTTP),"
                f" {addresses.host}:{addresses.grpc_port} (gRPC), {addresses.metrics_url}; Ctrl-C ends it",
            )
            server.wait(running)
