"""``trtpipe validate``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Check the config, target and policy, and that what they name is there.")
@common
def validate(options: Options) -> None:
    """Check the config file, the target and policy files, and that all that it names is there; change nothing.

    All problems at once, each with file, line and column, or the --set that gave the value. What the model and the rows
    of the prompts hold is checked by `trtpipe run --dry-run`.

    Example: trtpipe validate --set prompts.seed=1
    """
    from trtpipe.chain import validation

    space = validation.validate(options.config, options.settings)
    document = {
        "config": space.config.model_dump(),
        "target": space.target.model_dump(),
        "policy": space.policy.model_dump(),
    }
    text = f"{space.config_path}: valid (model {space.config.model}, engine {space.target.kind})"
    options.result(document, text)
