"""``trtpipe init``."""

from __future__ import annotations

from pathlib import Path

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Write a workspace with the embedded sample's config and prompts.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@common
def init(options: Options, folder: Path) -> None:
    """Write trtpipe.yaml, targets, a drift policy, sample prompts and .gitignore into FOLDER (default: this one).

    A file that is there already is never overwritten: then nothing is written.

    Example: trtpipe init my-model
    """
    from trtpipe.config import starter

    written = starter.write(folder)
    steps = [f"cd {folder}", "trtpipe validate", "trtpipe run"]
    lines = [*(f"wrote {path}" for path in written), "next: " + "\n      ".join(steps[folder == Path() :])]
    options.result({"folder": str(folder), "files": [str(path) for path in written]}, "\n".join(lines))
