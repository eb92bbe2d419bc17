"""``trtpipe reload``."""

from __future__ import annotations

import time

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Load the served models again.")
@common
def reload(options: Options) -> None:
    """Load the models that `trtpipe serve` serves again, where the engine has died; the server need not restart.

    Triton lets nobody else do so: this sends the key that the server keeps in the workspace.

    Example: trtpipe reload
    """
    from trtpipe.chain import released
    from trtpipe.core.store import Store
    from trtpipe.triton_repo import control, server

    space = options.workspace()
    addresses = released.addresses_of(space)
    started = time.monotonic()
    control.reload(
        addresses.http_url,
        server.working_folder(Store(space.root).state, addresses),
        time_limit_s=space.config.serving.ready_timeout_s,
    )
    seconds = time.monotonic() - started
    options.result({"seconds": round(seconds, 1)}, f"the models are loaded again after {seconds:.0f} s")
