"""``trtpipe profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import Stale

if TYPE_CHECKING:
    from trtpipe.calibration.compare import Finding
    from trtpipe.cli.console import Console
    from trtpipe.config.load import Workspace
    from trtpipe.core.store import Store

BAD_ROWS_SHOWN = 5


@click.command(short_help="Describe a log of prompts, and what would be chosen from it.")
@click.option(
    "--prompts",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file, a folder or a glob instead of the config's; nothing is chosen from it.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="A prompt set's folder or record: exit code 9 where the log no longer looks like it.",
)
@click.option("--block-tokens", type=click.IntRange(1), help="Tokens per KV block.  [default: the target's]")
@click.option("--full", is_flag=True, help="Tokenize and compare every row instead of a sample.")
@click.option("--show-prompts", is_flag=True, help="Put the text of some prompts into the report.")
@common
def profile(
    options: Options,
    prompts: tuple[Path, ...],
    against: Path | None,
    block_tokens: int | None,
    *,
    full: bool,
    show_prompts: bool,
) -> None:
    """Describe prompts: lengths, segments, style, duplicates, shared prefixes. Rows that can't be read are reported.

    Writes the report to .trtpipe/prompts.html and .trtpipe/prompts.json; prompt text is in neither unless asked for.

    Example: trtpipe profile --prompts /logs/today.jsonl --against calibration/sets/3f2a0c1b2d4e5f60
    """
    from trtpipe.calibration import compare
    from trtpipe.calibration.stage import Report
    from trtpipe.chain import prompts as profiling
    from trtpipe.core.store import Store
    from trtpipe.report import prompts as report

    reference = None if against is None else profiling.reference_of(against)  # a log may take an hour to read
    space = options.workspace()
    store = Store(space.root)
    with options.console() as console:
        model = _model(space, store, console, options.wait_s)
        blocks = block_tokens or space.target.kv_block_tokens
        found = profiling.describe(space, model, prompts, blocks, full=full, reporter=console)
    findings = [] if reference is None else compare.compare(reference, found.document["profile"]["reference"])
    examples = found.examples if show_prompts else None
    store.state.mkdir(parents=True, exist_ok=True)
    path = Report(lambda content: report.page(content, examples), blocks).write(found.document, store.state)
    differing = [finding for finding in findings if not finding.inside]
    document = {
        "ok": not differing,
        "report": str(path),
        "against": [finding.document() for finding in findings],
        **found.document,
    }
    options.result(document, "\n".join([*summary(found.document), *_comparison(findings), f"report: {path}"]))
    if differing and not options.as_json:
        raise Stale(
            f"the prompts no longer look like the calibrated ones: {', '.join(one.feature for one in differing)}",
            where=str(against),
            fix="calibrate on the new prompts (trtpipe run), or look into the report at what changed",
        )
    raise click.exceptions.Exit(Stale.exit_code if differing else 0)


def _model(space: Workspace, store: Store, console: Console, wait_s: float) -> Path:
    """Return the model's folder; only a sample model that is not there yet takes the lock."""
    from trtpipe.chain.chain import Chain
    from trtpipe.chain.foresight import Foresight, NotMade
    from trtpipe.core.runner import Runner
    from trtpipe.core.store import command_line

    try:
        return Chain(space, Foresight(store), keep_digests=False).model.folder
    except NotMade:
        with store.lock(command_line(), wait_s=wait_s, note=console.note):
            return Chain(space, Runner(store, console)).model.folder


def summary(document: dict[str, Any]) -> list[str]:
    """Return what a person wants to know first, a line each."""
    profile, ledger = document["profile"], document["ledger"]
    lengths, prefix = profile["lengths"], profile["prefix"]
    shapes = ", ".join(f"{count} {shape}" for shape, count in document["log"]["shapes"].items())
    dropped = ", ".join(f"{count} {reason}" for reason, count in ledger["dropped"].items())
    sampled = "" if profile["whole_log"] else f" (from {profile['sample_rows']} rows drawn by keyed hash)"
    short, long = (_estimate(lengths["prompt_tokens"][name]) for name in ("p50", "p99"))
    segments = ", ".join(f"{row['segment']} {row['share']:.1%}" for row in profile["segments"])
    blocks = f"blocks of {prefix['block_tokens']} tokens"
    lines = [
        f"read      {'; '.join(document['log']['files'])}: {ledger['rows']} row(s), {shapes}",
        f"dropped   {dropped or 'nothing'}",
        *_chosen(document["selection"], ledger),
        f"prompts   median {short} tokens, 99 % below {long}{sampled}",
        f"segments  {segments}",
        f"prefixes  {prefix['reuse_share']:.1%} of the prefill is saved by {blocks}",
    ]
    lines += [
        f"          a {cut['kind']} at token {cut['token']} in {cut['prompts_share']:.0%} of the prompts cuts them:"
        f" {cut['share_if_moved']:.1%} if it stood at the end"
        for cut in prefix["cuts"]
    ]
    lines += [f"bad row   {finding['where']}: {finding['what']}" for finding in document["findings"][:BAD_ROWS_SHOWN]]
    hidden = document["findings_total"] - BAD_ROWS_SHOWN
    return lines + ([f"          and {hidden} more bad rows, in the report"] if hidden > 0 else [])


def _chosen(selection: dict[str, Any] | None, ledger: dict[str, Any]) -> list[str]:
    """Return what became of the rows that are not dropped; nothing where none was to be chosen."""
    if selection is None:
        return []
    ends = ", ".join(f"{ledger[name]} {name}" for name in ("kept", "cut", "windowed"))
    calibration = f"{selection['calibration']['delivered']} to calibrate with ({selection['general_prompts']} general)"
    return [f"chosen    {ends}: {calibration}, {selection['heldout_prompts']} held out"]


def _estimate(found: dict[str, float]) -> str:
    if found["low"] == found["high"]:
        return f"{found['value']:.0f}"
    return f"{found['value']:.0f} ({found['low']:.0f} to {found['high']:.0f})"


def _comparison(findings: list[Finding]) -> list[str]:
    return [
        f"against   {finding.feature}: {finding.statistic} {finding.value:.4f}, limit {finding.limit:.4f}"
        f" {'' if finding.inside else '  BEYOND'}".rstrip()
        for finding in findings
    ]
