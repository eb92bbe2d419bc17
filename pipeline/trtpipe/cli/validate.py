"""``trtpipe validate``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Check the config, the target and the policy.")
@common
def validate(options: Options) -> None:
    """Check the config file and the target and policy files that it names; change nothing.

    Example: trtpipe validate --set prompts.seed=1
    """
    space = options.workspace()
    document = {
        "config": space.config.model_dump(),
        "target": space.target.model_dump(),
        "policy": space.policy.model_dump(),
    }
    text = f"{space.config_path}: valid (model {space.config.model}, engine {space.target.kind})"
    options.result(document, text)
