"""``trtpipe rollback``."""

from __future__ import annotations

from functools import partial

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Go back to the release that was current before.")
@common
def rollback(options: Options) -> None:
    """Go back to the release that was current before the present one.

    Example: trtpipe rollback --json
    """
    from trtpipe.chain import servable
    from trtpipe.core.store import Store
    from trtpipe.release import promote as promotion

    if options.dry_run:
        release, _verdict = promotion.previous(Store(options.workspace().root))
        with options.console() as console:
            servable.require(release, console.note)
        document = {"dry_run": True, "release": release.id, "digest": release.digest}
        options.result(document, f"release {release.id} would become current again")
        return
    with options.locked() as (_, store, console):
        release = promotion.rollback(store, partial(servable.require, note=console.note))
    document = {"release": release.id, "digest": release.digest}
    options.result(document, f"release {release.id} is current again")
