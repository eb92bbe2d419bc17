"""``trtpipe calibrate``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Select prompts and quantize the model to an int4 checkpoint.")
@common
def calibrate(options: Options) -> None:
    """Select prompts and quantize the model to an int4 checkpoint.

    What is there already and unchanged is reused.

    Example: trtpipe calibrate --set quantization.group_size=64
    """
    from trtpipe.cli import steps

    steps.obtain(options, "checkpoint")
