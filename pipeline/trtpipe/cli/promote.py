"""``trtpipe promote``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Make a release with a passing verdict the current one.")
@click.argument("release", required=False)
@common
def promote(options: Options, release: str | None) -> None:
    """Make RELEASE (an id or its beginning; without it the newest) the current one.

    The release needs a passing verdict for exactly its bytes.

    Example: trtpipe promote 3f2a
    """
    from trtpipe.release import promote as promotion

    with options.locked() as (_, store, _console):
        found = promotion.find(store, release)
        changed = promotion.promote(store, found, promotion.verdict_of(store, found))
    document = {"release": found.id, "digest": found.digest, "changed": changed}
    options.result(document, f"release {found.id} is current" + ("" if changed else " (it was already)"))
