"""The options of commands that change the workspace: ``--dry-run`` and ``--wait``."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import click

from trtpipe.cli.common import Options

if TYPE_CHECKING:
    from trtpipe.chain.foresight import Foreseen


class Seconds(click.FloatRange):
    """A number that can be waited for: not a number would be no limit at all."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


OPTIONS: tuple[click.Parameter, ...] = (
    click.Option(["--dry-run"], is_flag=True, help="Say what would be done and why; change nothing."),
    click.Option(
        ["--wait", "wait_s"],
        type=Seconds(min=0),
        default=0.0,
        metavar="SECONDS",
        help="Wait so long for another run in this workspace to end.  [default: not at all]",
    ),
)


def changing(command: click.Command, artifact: str | None) -> click.Command:
    """Return the command with these options; one that obtains a chain's ``artifact`` is only foreseen in a dry run."""
    changed = copy.copy(command)
    changed.params = [*command.params, *OPTIONS]
    run = command.callback
    assert run is not None  # noqa: S101 - every command has one

    def foresee_or_run(**given: Any) -> Any:
        if given["dry_run"] and artifact is not None:
            return foresee(Options.take(given), artifact)
        return run(**given)

    changed.callback = foresee_or_run
    return changed


def foresee(options: Options, artifact: str) -> None:
    """Say what obtaining the chain's ``artifact`` would do."""
    from trtpipe.chain import foresight

    show(options, foresight.foresee(options.workspace(), artifact))


def show(options: Options, stages: list[Foreseen]) -> None:
    """Say what would become of these stages."""
    width = max(len(stage.stage) for stage in stages)
    lines = [f"{stage.stage:{width}}  {stage.decision:7}  {stage.reason}" for stage in stages]
    options.result({"dry_run": True, "stages": [stage.document() for stage in stages]}, "\n".join(lines))
