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
    from trtpipe.chain.serving import Serving
    from trtpipe.core.store import Store
    from trtpipe.triton_repo import control, server

    space = options.workspace()
    with options.console() as console:
        serving = Serving(space, Store(space.root), None, console.note)
    # With `serve --follow` the release may be on the second ports, and while it goes over, there are two.
    places = serving.addresses, serving.addresses.higher(space.config.serving.second_ports_up)
    folders = {each: server.working_folder(serving.store.state, each) for each in places}
    held = [each for each in places if control.has_key(folders[each])]
    addresses = min(held, key=lambda each: server.is_ready(each.http_url), default=serving.addresses)
    started = time.monotonic()
    control.reload(addresses.http_url, folders[addresses], time_limit_s=space.config.serving.ready_timeout_s)
    seconds = time.monotonic() - started
    options.result({"seconds": round(seconds, 1)}, f"the models are loaded again after {seconds:.0f} s")
