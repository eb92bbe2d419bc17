"""``trtpipe check-drift``."""

from __future__ import annotations

import json

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Compare the release with the unquantized model.")
@common
def check_drift(options: Options) -> None:
    """Compare the release with the unquantized model on held-out prompts, and with what Triton serves.

    Exit code 0 for pass, 6 for fail, 7 for inconclusive.

    Example: trtpipe check-drift --set policy.overall.top1_agreement_min=0.9
    """
    from trtpipe.chain.chain import Chain
    from trtpipe.cli import outcome
    from trtpipe.core.runner import Runner

    with options.locked() as (space, store, console):
        runner = Runner(store, console)
        verdict = Chain(space, runner).verdict
    found = json.loads((verdict.path / "verdict.json").read_text("utf-8"))
    document = outcome.document(runner.outcomes) | {"ok": found["verdict"] == "pass", "verdict": found}
    options.result(document, (verdict.path / "verdict.txt").read_text("utf-8"))
    if not options.as_json:
        outcome.require_pass(verdict)
    raise click.exceptions.Exit(outcome.exit_code(found["verdict"]))
