"""``trtpipe run``."""

from __future__ import annotations

from functools import partial

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Run the whole chain and promote what passes the drift check.")
@common
def run(options: Options) -> None:
    """Run the whole chain: prompts, calibration, engine, release, drift check; promote what passes.

    A stage whose inputs and parameters are unchanged is reused.

    Example: trtpipe run --set quantization.recipe=rtn
    """
    from trtpipe.chain import servable
    from trtpipe.chain.chain import Chain
    from trtpipe.cli import outcome
    from trtpipe.core.runner import Runner
    from trtpipe.release.promote import promote

    with options.locked() as (space, store, console):
        (store.state / outcome.REPORT).unlink(missing_ok=True)  # a run that is stopped must not leave the last one's
        runner = Runner(store, console)
        chain = Chain(space, runner)
        verdict = chain.verdict
        try:
            outcome.require_pass(verdict)
            changed = promote(store, chain.release, verdict, partial(servable.require, note=console.note))
        finally:  # a rejected run is the one that is read most closely
            report = outcome.write_report(store, runner.outcomes, verdict)
    document = outcome.document(runner.outcomes) | {
        "release": chain.release.id,
        "promoted_now": changed,
        "report": str(report),
    }
    options.result(document, outcome.table(runner.outcomes, verdict, chain.release, report, changed=changed))
