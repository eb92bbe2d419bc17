"""``trtpipe plan``."""

from __future__ import annotations

from pathlib import Path

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import ConfigError


@click.command(short_help="Say what TensorRT-LLM would make of a model and a target.")
@click.option(
    "--model",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the model's config.json; no weights are read.  [default: the config's]",
)
@click.option("--target", type=click.Path(path_type=Path), help="The target file.  [default: the config's]")
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    help="Lengths of your prompts: a file of `trtpipe profile --json`, or a prompt set.",
)
@common
def plan(options: Options, model: Path | None, target: Path | None, profile: Path | None) -> None:
    """Say in a second what TensorRT-LLM would make of a model and a target, before anything is quantized or built.

    What is legal and what is not, what the builder would change without asking, what that costs and the ways out; the
    memory of a GPU, how many sequences the KV cache holds in each of its types, and limits to build with. Exit code 3
    where the target can't be had as written.

    Example: trtpipe plan --model /models/qwen --target engines/a100x8.yaml --profile profile.json
    """
    from trtpipe.chain import plan as planning
    from trtpipe.cli.plan_text import text

    model, target, named = given(options, model, target)
    planned = planning.plan(model, target, options.settings, profile, named=named)
    refusals = planned.plan.refusals
    options.result({"ok": not refusals, **planned.document()}, text(planned))
    if refusals and not options.as_json:
        raise ConfigError(
            f"no engine can be made of this as written: {len(refusals)} refused, see above",
            where=str(target),
            fix=f"change the target or the model as said there, and plan again{another(named)}",
        )
    raise click.exceptions.Exit(ConfigError.exit_code if refusals else 0)


def given(options: Options, model: Path | None, target: Path | None) -> tuple[Path, Path, str | None]:
    """Return model folder and target file, from the config where they are not given; and the sample's name there."""
    from trtpipe.config.schema import SAMPLE_MODEL

    if model is not None and target is not None:
        return model, target, None
    space = options.workspace()
    target = target or space.resolve(space.config.target)
    if model is not None:
        return model, target, None
    if space.config.model != SAMPLE_MODEL:
        return space.resolve(space.config.model), target, None

    from trtpipe.chain import sample_model

    return sample_model.folder(space), target, SAMPLE_MODEL


def another(named: str | None) -> str:
    """Return what to do besides where the model is the sample, which nobody builds an engine of."""
    return "" if named is None else "; or give the folder of your model with --model: the config's is the sample"
