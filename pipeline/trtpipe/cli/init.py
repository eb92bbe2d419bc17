"""``trtpipe init``."""

from __future__ import annotations

from pathlib import Path

import click

from trtpipe.cli.common import Options, common


@click.command(short_help="Write a workspace with the embedded sample's config and prompts.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@common
def init(options: Options, folder: Path) -> None:
    """Write trtpipe.yaml, targets, sample prompts and .gitignore into FOLDER (default: this one).

    A file that is there already is never overwritten: then nothing is written. Triton needs a Python environment of its
    own, for the drift check and for `serve`; the commands that make it are printed.

    Example: trtpipe init my-model
    """
    from trtpipe.config import starter
    from trtpipe.config.schema import Serving
    from trtpipe.triton_repo import installation

    written = starter.write(folder)
    triton = Path(Serving().triton_environment)
    making = [] if (folder / triton).exists() else [*installation.making(triton).split(" && ")]
    steps = [f"cd {folder}", "trtpipe validate", *making, "trtpipe run"]
    lines = [*(f"wrote {path}" for path in written), "next: " + "\n      ".join(steps[folder == Path() :])]
    if making:
        lines.append("(or, where Triton is installed already: trtpipe run --set serving.triton_environment=DIR)")
    options.result({"folder": str(folder), "files": [str(path) for path in written]}, "\n".join(lines))
