"""An engine folder as `trtllm-build` leaves it: config.json and one plan a rank."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trtpipe.errors import ConfigError, TrtpipeError, raise_all

CONFIG = "config.json"
TOP_KEYS = ("version", "pretrained_config", "build_config")
RANK_FILE = re.compile(r"rank(\d+)\.engine")
# Ranks of one pipeline stage hold equal shares of the same linears; what differs is a few KiB of norms and names.
SHORT_SHARE = 0.8
KEYS_SHOWN = 8
BUILD_AGAIN = "build it again; an engine in parts is never used"


@cache
def keys_of(part: str) -> frozenset[str]:
    """Return the keys of a part of config.json, from engine_config.toml: top, build_config or plugin_config."""
    table = tomllib.loads(Path(__file__).with_name("engine_config.toml").read_text("utf-8"))
    return frozenset(row["name"] for row in table[part])


@dataclass(frozen=True)
class EngineFolder:
    """``sizes``: bytes of each rank's file, by rank."""

    path: Path
    config: dict[str, Any]
    sizes: dict[int, int]

    @property
    def version(self) -> str:
        return str(self.config["version"])

    @property
    def pretrained(self) -> dict[str, Any]:
        found: dict[str, Any] = self.config["pretrained_config"]
        return found

    @property
    def tensor_parallel(self) -> int:
        return int(self.pretrained["mapping"]["tp_size"])

    @property
    def world_size(self) -> int:
        """Ranks that the engine runs in, and processes that a launch must start."""
        return self.tensor_parallel * int(self.pretrained["mapping"].get("pp_size", 1))


def read(path: Path) -> EngineFolder:
    """Read a folder. Raises ConfigError with everything that is missing, short or left over."""
    config = _config(path)
    found = {int(name[1]): file.stat().st_size for file in path.iterdir() if (name := RANK_FILE.fullmatch(file.name))}
    folder = EngineFolder(path, config, dict(sorted(found.items())))
    raise_all(rank_faults(folder))
    return folder


def rank_faults(folder: EngineFolder) -> list[TrtpipeError]:
    """Return what is wrong with the ranks' files, one problem a rank."""
    path, sizes, world = folder.path, folder.sizes, folder.world_size
    problems: list[TrtpipeError] = [
        ConfigError(f"rank {rank} of {world} is missing", where=str(path / f"rank{rank}.engine"), fix=BUILD_AGAIN)
        for rank in range(world)
        if rank not in sizes
    ]
    problems += [
        ConfigError(
            f"rank {rank} is left over: the engine has {world} ranks",
            where=str(path / f"rank{rank}.engine"),
            fix="an earlier build with more ranks wrote into the same folder: build into an empty one",
        )
        for rank in sizes
        if rank >= world
    ]
    for rank, size in sizes.items():
        first = rank - rank % folder.tensor_parallel
        longest = max(sizes.get(other, 0) for other in range(first, first + folder.tensor_parallel))
        if size < SHORT_SHARE * longest or size == 0:
            problems.append(
                ConfigError(
                    f"rank {rank} is short: {size:,} B, where another of its stage has {longest:,} B",
                    where=str(path / f"rank{rank}.engine"),
                    fix=BUILD_AGAIN,
                )
            )
    return problems


def _config(path: Path) -> dict[str, Any]:
    file = path / CONFIG
    try:
        config = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            "no engine: there is no config.json, which rank 0 writes", where=str(path), fix="give an engine's folder"
        ) from None
    except ValueError as fault:
        raise ConfigError(f"config.json is damaged: {fault}", where=str(file), fix=BUILD_AGAIN) from None
    missing = [key for key in TOP_KEYS if not isinstance(config, dict) or key not in config]
    if not missing and "tp_size" not in (config["pretrained_config"].get("mapping") or {}):
        missing = ["pretrained_config.mapping.tp_size"]
    if missing:
        raise ConfigError(
            f"not an engine directory: config.json has the keys {_listed(config)}, expected "
            f"{', '.join(TOP_KEYS)} ({', '.join(missing)} missing)",
            where=str(file),
            fix=_instead(config),
        )
    result: dict[str, Any] = config
    return result


def _listed(config: Any) -> str:
    names = sorted(config) if isinstance(config, dict) else []
    more = [f"{len(names) - KEYS_SHOWN} more"] if len(names) > KEYS_SHOWN else []
    return ", ".join([*names[:KEYS_SHOWN], *more]) or "none"


def _instead(config: Any) -> str:
    if isinstance(config, dict) and {"architecture", "mapping"} <= config.keys():
        return "it is a checkpoint: `trtpipe build-engine --checkpoint` makes an engine of it"
    if isinstance(config, dict) and "builder_config" in config:
        return "it is an engine of TensorRT-LLM before 0.8, which no newer version serves: build it again"
    return "give the folder that trtllm-build wrote"
