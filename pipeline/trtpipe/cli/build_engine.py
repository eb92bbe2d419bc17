"""``trtpipe build-engine``: of the local engine the chain's step, of TensorRT-LLM the lines and the build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import DEFAULT_CONFIG, Options, common
from trtpipe.errors import ConfigError, UsageFault

if TYPE_CHECKING:
    from trtpipe.chain.plan import Planned
    from trtpipe.chain.trtllm_checkpoint import Config
    from trtpipe.chain.trtllm_engine import Foretold


@click.command("build-engine", short_help="Build the target's engine from the checkpoint.")
@click.option("--target", type=click.Path(path_type=Path), help="The target file.  [default: the config's]")
@click.option(
    "--model",
    type=click.Path(path_type=Path, file_okay=False),
    help="TensorRT-LLM: the model's folder; a dry run needs its config.json only.  [default: the config's]",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    help="TensorRT-LLM: the checkpoint in its layout, as `trtpipe export` writes it.",
)
@click.option(
    "--profile", type=click.Path(path_type=Path), help="TensorRT-LLM: lengths of your prompts, as for `plan`."
)
@common
def build_engine(
    options: Options, target: Path | None, model: Path | None, checkpoint: Path | None, profile: Path | None
) -> None:
    """Build the target's engine from the checkpoint.

    What is there already and unchanged is reused. The local engine is made with everything before it. Of TensorRT-LLM
    the plan's checks come first; --dry-run then prints the exact lines on any machine, and without it the engine is
    built here, by TensorRT-LLM 1.2.1 on this host or in its container, inspected and locked.

    Example: trtpipe build-engine --target engines/a100x8.yaml --model /models/qwen --dry-run
    """
    from trtpipe.config.load import target_file

    if target is not None:
        target = target.absolute()
        options = with_target(options, target)
        own = tuple(setting for setting in options.settings if setting.startswith("target."))
        kind = target_file(target, own).target.kind
    else:
        kind = options.workspace().target.kind
    if kind == "tensorrt-llm":
        _tensorrt_llm(options, target, model, checkpoint, profile)
        return
    if model or checkpoint or profile:
        raise UsageFault("--model, --checkpoint and --profile are for TensorRT-LLM", where="the command line",
                         fix="the local engine is built from the config's model: leave them out")  # fmt: skip
    _local(options)


def with_target(options: Options, target: Path) -> Options:
    """Return the options with the config's target replaced; overrides of the target's keys go to this one."""
    return replace(options, settings=(f"target={target}", *options.settings))


def _local(options: Options) -> None:
    from trtpipe.cli import changing, steps

    if options.dry_run:
        changing.foresee(options, "engine")
    else:
        steps.obtain(options, "engine")


def _tensorrt_llm(
    options: Options, target: Path | None, model: Path | None, checkpoint: Path | None, profile: Path | None
) -> None:
    foretold = foretold_of(options, target, model, checkpoint, profile)
    if options.dry_run:
        from trtpipe.chain import trtllm_engine as engine
        from trtpipe.cli.build_text import text

        if checkpoint is not None:
            engine.require_checkpoint(foretold.planned, checkpoint.absolute())
        options.result(foretold.document(), text(foretold))
    elif checkpoint is None:
        raise UsageFault(
            "a TensorRT-LLM engine is built from a TensorRT-LLM checkpoint, and none is given",
            where="--checkpoint",
            fix="the same with --dry-run prints the line that makes it",
        )
    else:
        _build(options, foretold, checkpoint.absolute())


def foretold_of(
    options: Options, target: Path | None, model: Path | None, checkpoint: Path | None, profile: Path | None
) -> Foretold:
    """Return the build of a legal plan; end with the findings where it is not. What is None is the config's."""
    from trtpipe.chain import plan as planning
    from trtpipe.chain import trtllm_engine as engine
    from trtpipe.cli.plan import given

    model, target, named = given(options, model, target)
    own = tuple(setting for setting in options.settings if setting.startswith("target."))
    planned = planning.plan(model.absolute(), target, own, profile, named=named)
    foretold = None
    if not planned.plan.refusals:
        foretold = engine.foretell(planned, checkpoint and checkpoint.absolute(), _config(options, checkpoint))
    _require_legal(options, planned, foretold)
    assert foretold is not None  # noqa: S101 - a refused plan has ended above
    return foretold


def _config(options: Options, checkpoint: Path | None) -> Config:
    """Return what the export of a checkpoint reads; where one is given or there is no config yet, nothing is read."""
    from trtpipe.chain.trtllm_checkpoint import Config

    none_yet = options.config == Path(DEFAULT_CONFIG) and not options.config.exists()
    path = None if none_yet or checkpoint is not None else options.workspace().config_path
    return Config(path, options.settings)


def _require_legal(options: Options, planned: Planned, foretold: Foretold | None) -> None:
    """End with the findings and the code of a refused plan where anything is refused."""
    from trtpipe.cli.plan import another
    from trtpipe.cli.plan_text import findings_text, heading

    findings = (*planned.plan.findings, *(foretold.findings if foretold else ()))
    refusals = [finding for finding in findings if finding.kind == "refused"]
    if not refusals:
        return
    document = {"ok": False, "findings": [finding.document() for finding in findings]}
    options.result(document, "\n".join([*heading(planned), *findings_text(findings)]))
    if options.as_json:
        raise click.exceptions.Exit(ConfigError.exit_code)
    raise ConfigError(
        f"no engine is built of this as written: {len(refusals)} refused, see above",
        where=str(planned.target),
        fix=f"change the target or the model as said there{another(planned.named)}",
    )


def _build(options: Options, foretold: Foretold, checkpoint: Path) -> None:
    from trtpipe.chain import trtllm_engine as engine
    from trtpipe.cli import outcome
    from trtpipe.core.runner import Runner

    with options.locked() as (_, store, console):
        runner = Runner(store, console)
        made = engine.build(runner, foretold, checkpoint)
    document = {**outcome.document(runner.outcomes), "notes": made.record.notes}
    options.result(document, f"{outcome.stages(runner.outcomes)}\n\nengine: {made.path}")
