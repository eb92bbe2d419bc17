"""Judge a model repository that was made elsewhere: by hand, or by upstream's template tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.triton_repo import config_check, engine_check, graph, parameter_check, source, upstream
from trtpipe.triton_repo.source import Source

MODELS = {model.name: model for model in upstream.MODELS}
ENGINE, BLS = upstream.ENGINE.name, upstream.BLS.name
NAME = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Checked:
    """A repository in order.

    ``unset``: by model, the parameters whose placeholder was left and counts as not given. ``engine``: the folder that
    the limits were compared with; None where it is not on this machine.
    """

    models: list[str]
    unset: dict[str, list[str]]
    engine: Path | None


def check(folder: Path) -> Checked:
    """Check the repository, or the one of a release.

    Raises ConfigError or Problems, with everything that was found at once.
    """
    repository = folder / "model_repository" if (folder / "model_repository").is_dir() else folder
    if not repository.is_dir():
        raise ConfigError("there is no such folder", where=str(folder), fix="give a model repository or a release")
    found: list[TrtpipeError] = []
    sources: dict[str, Source] = {}
    others = {path.parent.name for path in repository.glob("*/config.pbtxt")} - MODELS.keys()
    for name in (*MODELS, *sorted(others)):
        read, faults = _model(repository / name)
        found += faults
        if read is not None:
            sources[name] = read
    found += problems(sources)
    engine = engine_check.folder(sources[ENGINE]) if ENGINE in sources else None
    if engine is not None:
        found += engine_check.check(sources[ENGINE], engine)
    raise_all(found)
    return Checked(
        models=list(sources),
        unset={name: unset for name, read in sources.items() if (unset := parameter_check.left_unset(read))},
        engine=engine,
    )


def problems(sources: Mapping[str, Source]) -> list[TrtpipeError]:
    """Return what is wrong with configs, by model, each alone and all together."""
    # First: a number that stands for nothing can't be compared with anything.
    found = [problem for read in sources.values() for problem in config_check.enums(read, read.config)]
    if found:
        return found
    for name, read in sources.items():
        found += config_check.instances(read)
        if name in MODELS:
            found += config_check.tensors(read, MODELS[name])
        found += parameter_check.check(read)
    return [*found, *_decoupled(sources), *_batches(sources), *_wiring(sources)]


def _model(folder: Path) -> tuple[Source | None, list[TrtpipeError]]:
    if not folder.is_dir():
        return None, [ConfigError(f"the model {folder.name} is missing", where=str(folder), fix="add its folder")]
    path = folder / "config.pbtxt"
    if not path.is_file():
        return None, [ConfigError("the model has no config", where=str(path), fix="write its config.pbtxt")]
    read, problems = source.read(path)
    return read, [*problems, *_versions(folder, read)]


def _versions(folder: Path, read: Source | None) -> Iterator[TrtpipeError]:
    versions = [path for path in folder.iterdir() if path.is_dir() and path.name.isdecimal() and path.name[0] != "0"]
    if not versions:
        yield ConfigError("the model has no version", where=str(folder), fix="add a folder `1`")
    if read is None:
        return
    if read.config.name not in ("", folder.name):
        yield ConfigError(
            f"the model is called `{read.config.name}`", where=read.at("name"), fix=f"its folder says {folder.name}"
        )
    if not read.config.backend and not read.config.platform:
        yield ConfigError(
            "neither backend nor platform is given", where=f"{read.path}:1", fix="say what runs the model"
        )
    for version in versions if read.config.backend == "python" else []:
        if not (version / "model.py").is_file():
            yield ConfigError("the version has no model.py", where=str(version), fix="add it: the backend is python")


def _decoupled(sources: Mapping[str, Source]) -> Iterator[TrtpipeError]:
    """Engine and BLS model must agree, and the steps around the engine answer once."""
    modes = {
        name: read.config.model_transaction_policy.decoupled
        for name, read in sources.items()
        if not read.is_open("decoupled")
    }
    if ENGINE in modes and modes.get(BLS, modes[ENGINE]) != modes[ENGINE]:
        yield ConfigError(
            f"decoupled is {str(modes[BLS]).lower()} here and {str(modes[ENGINE]).lower()} in {ENGINE}",
            where=sources[BLS].at("decoupled", "model_transaction_policy"),
            fix="make both the same: true where answers are streamed",
        )
    for name in ("preprocessing", "postprocessing"):
        if modes.get(name):
            yield ConfigError(
                "decoupled is true", where=sources[name].at("decoupled"), fix="take it out: one answer each"
            )


def _batches(sources: Mapping[str, Source]) -> Iterator[TrtpipeError]:
    """An ensemble may not take larger batches than its steps."""
    sizes = {name: read.config.max_batch_size for name, read in sources.items() if not read.is_open("max_batch_size")}
    whole = sizes.get("ensemble")
    if whole is None:
        return
    for step in sources["ensemble"].config.ensemble_scheduling.step:
        size = sizes.get(step.model_name, whole)
        if size < whole:
            yield ConfigError(
                f"max_batch_size is {whole}, that of the step {step.model_name} is {size}",
                where=sources["ensemble"].at("max_batch_size"),
                fix="make it the smallest of its steps",
            )


def _wiring(sources: Mapping[str, Source]) -> Iterator[TrtpipeError]:
    """An ensemble fits its steps; where one of the models can't be read, there is nothing to compare it with."""
    if MODELS.keys() - sources.keys():
        return
    for problem in graph.problems({name: read.config for name, read in sources.items()}):
        names = NAME.findall(problem.what)
        step = (problem.where or "").removeprefix("ensemble: step ")
        where = sources["ensemble"].at(*names, step)
        yield ConfigError(f"{problem.where}: {problem.what}", where=where, fix=problem.fix)
