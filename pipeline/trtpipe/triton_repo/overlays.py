"""Overlays: what a site says of a model's config, merged onto the generated one and judged with it.

``triton_repo/overlays/MODEL.pbtxt`` holds any part of a ``config.pbtxt``. A field replaces the generated one, a list
the whole list; of maps, such as ``parameters``, each key does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.core import digest
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.triton_repo import engine_check, overlay_check, pbtxt, repository_check, source
from trtpipe.triton_repo.source import Source

FOLDER = "triton_repo/overlays"
SUFFIX = ".pbtxt"

# By model. Merged, ``config`` is the whole one and ``lines`` stay the overlay's.
Overlays = Mapping[str, Source]
NONE: Overlays = MappingProxyType({})


@dataclass(frozen=True)
class Merged:
    """``configs`` by model; ``notes``: what is not as generated."""

    configs: dict[str, mc.ModelConfig]
    notes: list[str]


def read(folder: Path) -> dict[str, Source]:
    """Return the overlays in a folder, which need not be there. Raises ConfigError or Problems: all faults at once."""
    if not folder.is_dir() and (folder.is_symlink() or folder.exists()):
        raise ConfigError(_not_a("folder", folder), where=str(folder), fix="make it a folder of overlays, or remove it")
    found: dict[str, Source] = {}
    problems: list[TrtpipeError] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        if path.suffix != SUFFIX or path.stem not in repository_check.MODELS:
            models = ", ".join(repository_check.MODELS)
            what, fix = f"`{path.name}` is the overlay of no model", f"call it MODEL{SUFFIX}; the models are {models}"
            problems.append(ConfigError(what, where=str(path), fix=fix))
            continue
        if not path.is_file():
            problems.append(ConfigError(_not_a("file", path), where=str(path), fix="make it a file, or remove it"))
            continue
        overlay, faults = source.read(path)
        problems += faults
        if overlay is not None:
            found[path.stem] = overlay
            problems += overlay_check.decided(overlay)
            problems += [
                ConfigError(f"placeholder left in `{key}`", where=overlay.at_parameter(key), fix="give the value")
                for key, value in overlay.config.parameters.items()
                if pbtxt.PLACEHOLDER.search(value.string_value)
            ]
    raise_all(problems)
    return found


def _not_a(kind: str, path: Path) -> str:
    """Return what is said of something that is no ``kind``."""
    return f"is not a {kind}" if path.exists() else "is a link that leads nowhere"


def digest_of(overlays: Overlays) -> dict[str, str]:
    """Return what overlays add to the inputs of a stage's key: nothing where there are none."""
    return (
        {"overlays": digest.of_value({name: overlay.lines for name, overlay in overlays.items()})} if overlays else {}
    )


def merge(generated: Mapping[str, mc.ModelConfig], overlays: Overlays, engine: Path | None) -> Merged:
    """Merge and judge the result as ``package --check`` judges a repository with TensorRT-LLM's ``engine`` beside it.

    Raises ConfigError or Problems with file and line of the overlays that are at fault.
    """
    configs, notes = dict(generated), []
    problems: list[TrtpipeError] = []
    local = generated[repository_check.ENGINE].backend == "python"
    for name, overlay in overlays.items():
        config = mc.ModelConfig()
        config.CopyFrom(generated[name])
        _clear_lists(config, overlay.config)
        # of the text, because a message does not tell what is given as its default, such as `decoupled: false`
        text_format.Merge("\n".join(overlay.lines), config)
        configs[name] = config
        changed = [
            field.name
            for field in mc.ModelConfig.DESCRIPTOR.fields
            if getattr(config, field.name) != getattr(generated[name], field.name)
            # an empty part is equal to one that is not there, and Triton goes by whether it is
            or (field.has_presence and config.HasField(field.name) != generated[name].HasField(field.name))
        ]
        notes.append(f"{name}: {', '.join(changed) or 'nothing'} not as generated, by {FOLDER}/{name}{SUFFIX}")
        problems += overlay_check.check(overlay, generated[name], config, local=local)
    sources = {name: _source(name, config, overlays) for name, config in configs.items()}
    problems += repository_check.problems(sources)
    if engine is not None:
        problems += engine_check.check(sources[repository_check.ENGINE], engine)
    raise_all([_of_overlay(problem, overlays) for problem in problems])
    return Merged(configs, notes)


def _clear_lists(config: Message, overlay: Message) -> None:
    """Empty each list in ``config`` that the overlay has: merging would add to it."""
    for field, value in overlay.ListFields():
        if isinstance(value, Message):
            _clear_lists(getattr(config, field.name), value)
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            config.ClearField(field.name)


def _source(name: str, config: mc.ModelConfig, overlays: Overlays) -> Source:
    """Return the merged config; what is said about it stands at the overlay's lines where there is one."""
    if name in overlays:
        return replace(overlays[name], config=config)
    return Source(Path(name, "config.pbtxt"), pbtxt.render(config).splitlines(), config, frozenset())


def _of_overlay(problem: TrtpipeError, overlays: Overlays) -> TrtpipeError:
    """Name an overlay's line where the problem shows in a config that is as generated: nothing else has changed."""
    where = str(problem.where)
    if not overlays or any(where.startswith(f"{overlay.path}:") for overlay in overlays.values()):
        return problem
    words = re.findall(r"\w+", problem.what)
    likely = next((overlay for name, overlay in overlays.items() if name in words), next(iter(overlays.values())))
    return ConfigError(f"{where}: {problem.what}", where=likely.at(*words), fix=problem.fix)
