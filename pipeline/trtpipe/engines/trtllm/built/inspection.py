"""Everything that can be said of an engine folder without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.core import artifacts
from trtpipe.engines.trtllm.build.checkpoint import format_rows
from trtpipe.engines.trtllm.build.releases import WHY_NONE, is_past_engines
from trtpipe.engines.trtllm.built import compare, folder, lock, request
from trtpipe.engines.trtllm.built.kv_cost import KvCost
from trtpipe.engines.trtllm.findings import Finding
from trtpipe.engines.trtllm.gpus import gpu_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.built.folder import EngineFolder
    from trtpipe.engines.trtllm.built.lock import Lock
    from trtpipe.engines.trtllm.built.request import Request

TARGET_KEYS = ("kv_block_tokens", "max_seq_len", "max_num_tokens", "max_batch_size", "draft_tokens_max")
KV_ALGO_KEY = "quantization.kv_cache_quant_algo"
TABLES_OF = "TensorRT-LLM 1.2.1"
ARGUMENT_OF_KEY = {"kv_block_tokens": "tokens_per_block", "draft_tokens_max": "max_draft_len"}


@dataclass(frozen=True)
class Inspection:
    """``verified``: whether every byte was compared with a record; ``lock``, ``request``: None where there is none."""

    engine: EngineFolder
    verified: bool
    lock: Lock | None
    request: Request | None
    findings: tuple[Finding, ...]

    @property
    def refusals(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind == "refused"]

    def document(self) -> dict[str, Any]:
        engine, build = self.engine, self.engine.config["build_config"]
        quantization = engine.pretrained.get("quantization") or {}
        return {
            "every_byte_compared": self.verified,
            "version": engine.version,
            "architecture": engine.pretrained.get("architecture"),
            "dtype": engine.pretrained.get("dtype"),
            "quant_algo": quantization.get("quant_algo"),
            "kv_cache_quant_algo": quantization.get("kv_cache_quant_algo"),
            "mapping": engine.pretrained["mapping"],
            "world_size": engine.world_size,
            "rank_bytes": list(engine.sizes.values()),
            "sm_by_rank": self.lock and self.lock.sm_by_rank,
            "limits": {key: build.get(key) for key in ("max_batch_size", "max_seq_len", "max_num_tokens")},
            "plugin_config": build.get("plugin_config"),
            "lock": self.lock and self.lock.model_dump(),
            "findings": [finding.document() for finding in self.findings],
        }


def inspect(path: Path, target: TensorrtLlmTarget | None = None) -> Inspection:
    """Inspect an engine; ``target``: what it must be, besides what it was asked for when it was built.

    Raises ConfigError where the folder is no whole engine, Stale where a file is not the one that was recorded.
    """
    verified = (path / artifacts.RECORD).is_file()
    if verified:
        artifacts.verify(artifacts.read(path))
    engine, asked = folder.read(path), request.read(path)
    locked = lock.read(path) if (path / lock.LOCK).is_file() else None
    where = str(path / folder.CONFIG)
    found = [*_version(engine, target, locked, where), *_layout(engine, where)]
    if locked is None:
        found.append(Finding("warning", "no lock: nothing says which GPU and which TensorRT it is for", str(path),
                             fix="build it with `trtpipe build-engine`"))  # fmt: skip
    elif len(locked.sm_by_rank) != engine.world_size:
        found.append(Finding(
            "refused", f"the lock is of {len(locked.sm_by_rank)} ranks, and the engine has {engine.world_size}",
            f"{path / lock.LOCK} sm_by_rank", fix=folder.BUILD_AGAIN,
        ))  # fmt: skip
    if asked is not None:
        accepted = (target or asked.target).accepted_changes
        kv = KvCost.of_engine(engine, asked.target, asked.arguments)
        found += compare.findings(compare.differences(asked.arguments, engine.config), accepted, where, kv)
    if target is not None:
        found += _target(engine, target, asked, where)
        found += _sm(locked, target, path)
    return Inspection(engine, verified, locked, asked, tuple(found))


def _version(
    engine: EngineFolder, target: TensorrtLlmTarget | None, locked: Lock | None, where: str
) -> Iterator[Finding]:
    version = engine.version
    if is_past_engines(version):
        yield Finding("refused", f"TensorRT-LLM {version} has no engines", f"{where} version", why=WHY_NONE)
    for other, whose in ((target and target.version, "the target"), (locked and locked.tensorrt_llm, "the lock")):
        if other is not None and other != version:
            yield Finding(
                "refused",
                f"the engine is of TensorRT-LLM {version}, and {whose} says {other}",
                f"{where} version",
                cost="the runtime refuses an engine of another version, after minutes of loading",
                fix="build it again with the version that serves",
            )


def _layout(engine: EngineFolder, where: str) -> Iterator[Finding]:
    """Yield how the keys differ from those of the version that the tables are of."""
    build = engine.config["build_config"]
    for part, held in (("build_config", build), ("build_config.plugin_config", build.get("plugin_config") or {})):
        known = folder.keys_of(part.rpartition(".")[2])
        lacking, unknown = sorted(known - held.keys()), sorted(held.keys() - known)
        differing = [f"without {', '.join(lacking)}"] * bool(lacking) + [f"with {', '.join(unknown)}"] * bool(unknown)
        if differing:
            yield Finding(
                "warning",
                f"{part} is {' and '.join(differing)}: not the form that this program knows of {TABLES_OF}",
                f"{where} {part}",
                cost="what those keys decide is not compared with what was asked for",
                fix="see that the version that built it is the target's",
                source="tensorrt_llm/builder.py BuildConfig; tensorrt_llm/plugin/plugin.py PluginConfig",
            )


def _target(engine: EngineFolder, target: TensorrtLlmTarget, asked: Request | None, where: str) -> Iterator[Finding]:
    arguments = dict(_of_target(target))
    kv = KvCost.of_engine(engine, target, arguments)
    for key, got, wanted in format_rows(engine.pretrained, target):
        if got != wanted:
            yield Finding(
                "refused", f"{key} is {got} in the engine, and the target says {wanted}",
                f"{where} pretrained_config.{key}",
                cost=kv.of_kv_dtype(got) if kv and key == KV_ALGO_KEY else None,
                fix="build an engine of this target",
            )  # fmt: skip
    if asked is not None:  # what was asked for has been compared already
        arguments = {name: value for name, value in arguments.items() if asked.arguments.get(name) != value}
    yield from compare.findings(compare.differences(arguments, engine.config), target.accepted_changes, where, kv)


def _of_target(target: TensorrtLlmTarget) -> Iterator[tuple[str, str | int]]:
    """Yield the arguments that the target's own keys decide, without a plan."""
    for key in TARGET_KEYS:
        if (value := getattr(target, key)) != "auto":
            yield ARGUMENT_OF_KEY.get(key, key), value
    if target.kv_reuse or target.chunked_context:
        yield "use_paged_context_fmha", "enable"


def _sm(locked: Lock | None, target: TensorrtLlmTarget, path: Path) -> Iterator[Finding]:
    wanted = gpu_of(target.gpu, "gpu")
    wrong = [] if locked is None else [rank for rank, sm in enumerate(locked.sm_by_rank) if sm != wanted.sm]
    if locked is not None and wrong:
        yield Finding(
            "refused",
            f"built for SM {', '.join(map(str, sorted(set(locked.sm_by_rank))))} ({locked.gpu_name}), and the target's "
            f"{wanted.name} is SM {wanted.sm}",
            f"{path / lock.LOCK} sm_by_rank",
            why=f"ranks {', '.join(map(str, wrong))}: a TensorRT plan runs on the type of GPU that built it",
            fix="build it on the target's GPUs, or correct `gpu` in the target",
        )
