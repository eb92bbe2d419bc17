"""``trtpipe report``."""

from __future__ import annotations

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Write the calibration quality report.")
@common
def report(options: Options) -> None:
    """Write what quantizing cost: error, scales, clipping, KV ranges and time by layer, and KL and top-1 by segment.

    As a page and as JSON in .trtpipe, from the checkpoint that the config describes and the latest verdict on it.
    Nothing is computed anew; `trtpipe run` writes it as well.

    Example: trtpipe report --json
    """
    from trtpipe.chain import quality
    from trtpipe.chain.chain import Chain
    from trtpipe.chain.foresight import Foresight, NotMade
    from trtpipe.core.store import Store
    from trtpipe.errors import ConfigError

    space = options.workspace()
    store = Store(space.root)
    try:
        checkpoint = Chain(space, Foresight(store), keep_digests=False).checkpoint
    except NotMade as missing:
        raise ConfigError(
            f"there is no checkpoint for this config yet: {missing.stage} has not run",
            where=str(space.config_path),
            fix="trtpipe calibrate",
        ) from None
    written = quality.write(store, checkpoint)
    verdict = written.verdict
    document = {
        "checkpoint": checkpoint.id,
        "verdict": verdict and verdict.id,
        "page": str(written.page),
        "document": str(written.document),
    }
    cited = f"with verdict {verdict.id}" if verdict else "no drift check has been made on it yet"
    options.result(document, f"calibration quality of checkpoint {checkpoint.id} ({cited}): {written.page}")
