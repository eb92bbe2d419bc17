"""``trtpipe package``: of the local engine the chain's step, of TensorRT-LLM a release of an engine that is there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(short_help="Make the Triton release from the engine.")
@click.option("--check", "folder", type=FOLDER, help="Make nothing; judge this model repository, whoever made it.")
@click.option(
    "--engine", type=FOLDER, help="TensorRT-LLM: the engine's folder.  [default: the newest, where the target is of it]"
)
@click.option("--model", type=FOLDER, help="TensorRT-LLM: the folder with its tokenizer.  [default: the config's]")
@common
def package(options: Options, folder: Path | None, engine: Path | None, model: Path | None) -> None:
    """Make the Triton release from the engine.

    What is there already and unchanged is reused. The local engine is made with everything before it. An engine of
    TensorRT-LLM is packaged where its lock allows it to run, so on the machine that serves it.

    With --check, a repository made by hand or by upstream's template tool is compared with the contract of
    TensorRT-LLM 1.2.1: all that is wrong with it at once, with file and line; exit code 3.

    Example: trtpipe package --check /models/inflight_batcher_llm
    """
    from trtpipe.cli import changing, steps

    if folder is not None:
        _check(options, folder)
    elif engine is not None or options.workspace().target.kind == "tensorrt-llm":
        _tensorrt_llm(options, engine, model)
    elif model is not None:
        raise UsageFault("--model is for TensorRT-LLM", where="the command line", fix="leave it out, or give --engine")
    elif options.dry_run:
        changing.foresee(options, "release")
    else:
        steps.obtain(options, "release")


def _check(options: Options, folder: Path) -> None:
    from trtpipe.triton_repo import repository_check

    found = repository_check.check(folder)
    lines = [f"{folder}: in order ({', '.join(found.models)})"]
    lines.append(
        f"limits compared with the engine in {found.engine}"
        if found.engine
        else "limits not compared: the engine is not on this machine"
    )
    lines += [f"{model}: placeholders count as not given: {', '.join(unset)}" for model, unset in found.unset.items()]
    document = {
        "folder": str(folder),
        "models": found.models,
        "unset": found.unset,
        "engine": str(found.engine) if found.engine else None,
    }
    options.result(document, "\n".join(lines))


def _tensorrt_llm(options: Options, engine: Path | None, model: Path | None) -> None:
    from trtpipe.chain.foresight import Foresight, NotMade
    from trtpipe.cli import changing, outcome
    from trtpipe.core.runner import Runner
    from trtpipe.core.store import Store

    if options.dry_run:
        space = options.workspace()
        foresight = Foresight(Store(space.root))
        with suppress(NotMade):
            _made(space, foresight, engine, model)
        changing.show(options, list(foresight.foreseen.values()))
        return
    with options.locked() as (space, store, console):
        runner = Runner(store, console)
        made = _made(space, runner, engine, model)
    document = {**outcome.document(runner.outcomes), "release": made.id}
    options.result(document, f"{outcome.stages(runner.outcomes)}\n\nrelease: {made.path}")


def _made(space: Workspace, runner: Runner, engine: Path | None, model: Path | None) -> Artifact:
    from trtpipe.chain import released, trtllm_release
    from trtpipe.config.schema import SAMPLE_MODEL
    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.triton_repo import overlays

    if model is None and space.config.model == SAMPLE_MODEL:
        raise UsageFault("the sample is for the local engine", where="--model", fix="give the folder of a model")
    return trtllm_release.package(
        runner,
        engine.absolute() if engine else trtllm_release.newest_engine(runner.store),
        model.absolute() if model else space.resolve(space.config.model),
        space.config.prompts.template_date,
        released.ports_of(space),
        space.target if isinstance(space.target, TensorrtLlmTarget) else None,
        overlays.read(space.root / overlays.FOLDER),
    )
