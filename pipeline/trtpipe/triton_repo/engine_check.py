"""The engine model's config, as it lies on disk, against the engine that it names: its ``config.json`` and ranks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo.config_check import in_cpp
from trtpipe.triton_repo.source import Source

# What the engine must have been built with for each; without it the backend drops the parameter, with only a log line.
PAGED_CONTEXT = ("enable_kv_cache_reuse", "enable_chunked_context")


@dataclass(frozen=True)
class _Asked:
    """What a config asks for, with the place of each parameter."""

    source: Source

    def text(self, key: str) -> str:
        parameters = self.source.config.parameters
        return parameters[key].string_value if key in parameters else ""

    def number(self, key: str) -> int | None:
        """Return a whole number; None for what is not given, or a fault of its own."""
        return int(self.text(key)) if self.text(key).isdecimal() else None

    def is_true(self, key: str) -> bool:
        return self.text(key).lower() in {"true", "1"}

    def fault(self, what: str, key: str, fix: str) -> ConfigError:
        return ConfigError(what, where=self.source.at_parameter(key), fix=fix)


def folder(source: Source) -> Path | None:
    """Return the engine's folder; None where it is not on this machine. Relative ones are seen from the model's own."""
    path = (
        source.config.parameters["gpt_model_path"].string_value if "gpt_model_path" in source.config.parameters else ""
    )
    found = source.path.parent / path
    return found.resolve() if path and found.is_dir() else None


def check(source: Source, engine: Path) -> Iterator[TrtpipeError]:
    """Yield what the engine can't do of what its config asks for."""
    asked = _Asked(source)
    config = _config(engine)
    if not isinstance(config.get("build_config"), dict):
        if in_cpp(source.config):
            keys = f"has the keys {', '.join(sorted(config))}" if config else "can't be read"
            yield asked.fault(
                f"not an engine folder: {engine / 'config.json'} {keys}; no build_config",
                "gpt_model_path",
                "give the folder that trtllm-build has written",
            )
        return
    yield from _ranks(asked, engine, config)
    yield from _limits(asked, config["build_config"])


def _config(engine: Path) -> dict[str, Any]:
    try:
        found = json.loads((engine / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _section(config: dict[str, Any], key: str) -> dict[str, Any]:
    found = config.get(key)
    return found if isinstance(found, dict) else {}


def _count(config: dict[str, Any], key: str) -> int | None:
    found = config.get(key)
    return found if isinstance(found, int) else None


def _ranks(asked: _Asked, engine: Path, config: dict[str, Any]) -> Iterator[TrtpipeError]:
    mapping = _section(_section(config, "pretrained_config"), "mapping")
    world = (_count(mapping, "tp_size") or 1) * (_count(mapping, "pp_size") or 1)
    ranks = len(list(engine.glob("rank*.engine")))
    if ranks != world:
        yield asked.fault(
            f"the engine is for {world} ranks, its folder has {ranks}",
            "gpt_model_path",
            "build it again, or copy it whole",
        )
    for group in asked.text("gpu_device_ids").split(";"):
        ids = [entry for entry in group.split(",") if entry.strip().isdecimal()]
        if ids and len(ids) != world:
            yield asked.fault(
                f"gpu_device_ids names {len(ids)} GPUs, the engine is for {world}", "gpu_device_ids", f"name {world}"
            )


def _limits(asked: _Asked, built: dict[str, Any]) -> Iterator[TrtpipeError]:
    beams = _count(built, "max_beam_width")
    if beams is not None and (asked.number("max_beam_width") or 1) > beams:
        yield asked.fault(
            f"max_beam_width is {asked.text('max_beam_width')}, the engine was built for {beams}",
            "max_beam_width",
            f"make it {beams}, or build the engine with more",
        )
    plugins = _section(built, "plugin_config")
    for key in PAGED_CONTEXT if plugins.get("use_paged_context_fmha") is False else ():
        if asked.is_true(key):
            yield asked.fault(
                f"{key} is true, and the engine was built without use_paged_context_fmha",
                key,
                "make it false, or build the engine with it",
            )
    tokens, block = asked.number("max_tokens_in_paged_kv_cache"), _count(plugins, "tokens_per_block")
    longest = _count(built, "max_seq_len")
    if tokens and block and longest:
        needed = min(longest, asked.number("max_attention_window_size") or longest)
        if tokens // block * block < needed:
            yield asked.fault(
                f"max_tokens_in_paged_kv_cache is {tokens}: {tokens // block} blocks of {block}, and one sequence may "
                f"need {needed} tokens",
                "max_tokens_in_paged_kv_cache",
                f"make it at least {-(-needed // block) * block}",
            )
