"""What obtains one artifact of the chain, with everything before it that is not there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtpipe.cli.common import Options


def obtain(options: Options, artifact: str) -> None:
    """Obtain the chain's property ``artifact`` and say what became of each stage."""
    from trtpipe.chain.chain import Chain
    from trtpipe.cli import outcome
    from trtpipe.core.runner import Runner

    with options.locked() as (space, store, console):
        runner = Runner(store, console)
        found = getattr(Chain(space, runner), artifact)
    text = f"{outcome.stages(runner.outcomes)}\n\n{artifact}: {found.path}"
    options.result(outcome.document(runner.outcomes), text)
