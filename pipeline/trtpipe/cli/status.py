"""``trtpipe status``."""

from __future__ import annotations

import json
from typing import Any

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Show the current release, verdicts and history.")
@common
def status(options: Options) -> None:
    """Show which release is current, every release with its verdict, and the history of promotions.

    Example: trtpipe status --json
    """
    from trtpipe.core.store import Store
    from trtpipe.release.current import current, history
    from trtpipe.release.promote import verdict_of

    store = Store(options.workspace().root)
    promoted = current(store)
    releases = []
    for release in store.all("release"):
        verdict = verdict_of(store, release)
        outcome = json.loads((verdict.path / "verdict.json").read_text("utf-8"))["verdict"] if verdict else None
        releases.append(
            {
                "release": release.id,
                "digest": release.digest,
                "created": release.record.created,
                "verdict": outcome,
            }
        )
    document = {"current": promoted.id if promoted else None, "releases": releases, "history": history(store)}
    options.result(document, _text(document))


def _text(document: dict[str, Any]) -> str:
    lines = [f"current: {document['current'] or 'none'}", "releases:"]
    lines += [f"  {r['release']}  {r['created']}  {r['verdict'] or 'not checked'}" for r in document["releases"]]
    lines.append("history:")
    lines += [f"  {h['time']}  {h['action']:8}  {h['release']}  (before: {h['previous']})" for h in document["history"]]
    return "\n".join(lines)
