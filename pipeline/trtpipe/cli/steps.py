"""The commands that obtain one artifact of the chain, with everything before it that is not there yet."""

from __future__ import annotations

from pathlib import Path

import click

from trtpipe.cli.common import Options, common


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


def _step(name: str, artifact: str, summary: str, example: str) -> click.Command:
    """Make the command ``name`` that obtains the chain's property ``artifact``."""

    def step(options: Options) -> None:
        obtain(options, artifact)

    step.__doc__ = f"{summary}\n\nWhat is there already and unchanged is reused.\n\nExample: {example}"
    return click.command(name, short_help=summary)(common(step))


calibrate = _step(
    "calibrate",
    "checkpoint",
    "Select prompts and quantize the model to an int4 checkpoint.",
    "trtpipe calibrate --set quantization.group_size=64",
)


@click.command(short_help="Make the Triton release from the engine.")
@click.option(
    "--check",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Make nothing; judge this model repository, whoever made it.",
)
@common
def package(options: Options, folder: Path | None) -> None:
    """Make the Triton release from the engine.

    What is there already and unchanged is reused.

    With --check, a repository made by hand or by upstream's template tool is compared with the contract of
    TensorRT-LLM 1.2.1: all that is wrong with it at once, with file and line; exit code 3.

    Example: trtpipe package --check /models/inflight_batcher_llm
    """
    if folder is None:
        obtain(options, "release")
        return
    from trtpipe.triton_repo import repository_check

    models = repository_check.check(folder)
    options.result({"folder": str(folder), "models": models}, f"{folder}: in order ({', '.join(models)})")
