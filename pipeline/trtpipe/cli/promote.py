"""``trtpipe promote``."""

from __future__ import annotations

from functools import partial

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Make a release with a passing verdict the current one.")
@click.argument("release", required=False)
@common
def promote(options: Options, release: str | None) -> None:
    """Make RELEASE (an id or its beginning; without it the newest) the current one.

    The release needs a passing verdict for exactly its bytes; one of TensorRT-LLM also a machine that its lock allows.

    Example: trtpipe promote 3f2a
    """
    from trtpipe.chain import servable
    from trtpipe.release import promote as promotion

    if options.dry_run:
        _foresee(options, release)
        return
    with options.locked() as (_, store, console):
        found = promotion.find(store, release)
        may_run = partial(servable.require, note=console.note)
        changed = promotion.promote(store, found, promotion.verdict_of(store, found), may_run)
    document = {"release": found.id, "digest": found.digest, "changed": changed}
    options.result(document, f"release {found.id} is current" + ("" if changed else " (it was already)"))


def _foresee(options: Options, release: str | None) -> None:
    from trtpipe.chain import servable
    from trtpipe.core.store import Store
    from trtpipe.release import promote as promotion

    store = Store(options.workspace().root)
    found = promotion.find(store, release)
    promotion.require_promotable(found, promotion.verdict_of(store, found))
    with options.console() as console:
        servable.require(found, console.note)
    changed = not promotion.is_promoted(store, found)
    document = {"dry_run": True, "release": found.id, "digest": found.digest, "changed": changed}
    options.result(document, f"release {found.id} " + ("would become current" if changed else "is current already"))
