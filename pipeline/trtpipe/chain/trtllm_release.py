"""A TensorRT-LLM engine becomes a release, on a machine that may serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.chain import released, servable
from trtpipe.core import artifacts, model_folder
from trtpipe.engines.trtllm.built import lock
from trtpipe.engines.trtllm.launch import release_files, serving
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.triton_repo import trtllm_repository
from trtpipe.triton_repo.overlays import NONE, Overlays

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner
    from trtpipe.core.store import Store
    from trtpipe.engines.trtllm.built.inspection import Inspection
    from trtpipe.engines.trtllm.launch.line import Ports

# Key of the model's config.json -> of the engine's `pretrained_config`: they tell a wrong model's folder.
SAME = ("hidden_size", "num_hidden_layers", "num_attention_heads")

# What a target says of serving alone: an engine built before it was changed is served as it says now.
SERVING = (
    "kv_memory_share", "kv_reuse", "chunked_context", "serving_image", "load_time_limit_s", "replicas_max",
    "triton",
)  # fmt: skip


def newest_engine(store: Store) -> Path:
    """Return the newest TensorRT-LLM engine of the workspace. Raises ConfigError where there is none."""
    engines = [engine.path for engine in store.all("engine") if released.is_tensorrt_llm(engine.path)]
    if not engines:
        raise ConfigError(
            "there is no TensorRT-LLM engine yet", where=str(store.root), fix="trtpipe build-engine --target FILE"
        )
    return engines[-1]


def package(
    runner: Runner,
    engine: Path,
    model: Path,
    template_date: str,
    ports: Ports,
    current: TensorrtLlmTarget | None = None,
    site: Overlays = NONE,
) -> Artifact:
    """Make the release. ``model``: the folder with the tokenizer; ``template_date``: ISO 8601.

    ``ports``: of the host, where the release's compose.yaml shows the server. ``current``: the target
    whose keys of serving hold; by default the one that the engine was built for. ``site``: overlays of the configs.

    Raises what ``servable.require_engine`` raises, and ConfigError for a model that is not the engine's, for KV reuse
    or chunked context that the engine cannot have, or for a target without chunked context that it needs.
    """
    image = None if current is None else serving.image_of(current, lock.read(engine), engine)
    found, asked, uncompared = servable.require_engine(engine, image)
    artifact = artifacts.read(engine)
    _require_same_model(found, model)
    target, changed = _served(asked.target, current or asked.target)
    limits = found.engine.config["build_config"]
    _require_paged_context(target, limits, engine)
    if asked.target.chunked_context and not target.chunked_context:
        _require_whole_prompts(limits, engine)
    packaging = trtllm_repository.Packaging(
        requests_max=limits["max_batch_size"],
        kv_memory_share=target.kv_memory_share,
        kv_reuse=target.kv_reuse,
        chunked_context=target.chunked_context,
        load_time_limit_s=target.load_time_limit_s,
        template_date=template_date,
        models=target.triton,
    )
    kept = lock.read(engine)
    notes = [*uncompared, *changed, *serving.notes(target, kept, engine)]
    launch = trtllm_repository.Launch(release_files.files(engine, target, kept, ports), notes)
    return runner.obtain(trtllm_repository.stage(engine, artifact.digest, model, launch, packaging, site))


def _served(built: TensorrtLlmTarget, current: TensorrtLlmTarget) -> tuple[TensorrtLlmTarget, list[str]]:
    """Return the engine's target with the current keys of serving, and what that changes."""
    changes = {key: getattr(current, key) for key in SERVING if getattr(current, key) != getattr(built, key)}
    notes = [
        f"{key}: {value}, as the target says now; {getattr(built, key)} at the build" for key, value in changes.items()
    ]
    return built.model_copy(update=changes), notes


def _require_paged_context(target: TensorrtLlmTarget, limits: dict[str, Any], engine: Path) -> None:
    """Raise ConfigError where the target wants what needs paged context FMHA, and the engine has none.

    The backend would leave it out with a line in its log, and the release's record would say that it has it.
    """
    if limits["plugin_config"]["use_paged_context_fmha"]:
        return
    raise_all(
        [
            ConfigError(
                f"{key} is true in the target, and the engine was built without paged context FMHA, which it needs",
                where=str(engine / "config.json"),
                fix=f"{key}: false; or build an engine with it: kv_dtype: model keeps it",
            )
            for key in ("kv_reuse", "chunked_context")
            if getattr(target, key)
        ]
    )


def _require_whole_prompts(limits: dict[str, Any], engine: Path) -> None:
    """Raise ConfigError where the longest prompt needs chunked context: the engine's steps are shorter."""
    if limits["max_num_tokens"] < limits["max_seq_len"]:
        raise ConfigError(
            f"chunked_context is false in the target now, and the engine takes {limits['max_num_tokens']:,} tokens a "
            f"step, its sequences {limits['max_seq_len']:,}",
            where=str(engine),
            fix="chunked_context: true, or build an engine without it",
        )


def _require_same_model(found: Inspection, model: Path) -> None:
    """Raise ConfigError where tokenizer and engine can't be of one model."""
    config: dict[str, Any] = model_folder.config_of(model)
    problems: list[TrtpipeError] = [
        ConfigError(
            f"the model's {key} is {config.get(key)}, the engine's {found.engine.pretrained.get(key)}",
            where=str(model / "config.json"),
            fix="give the folder of the model that the engine was made of",
        )
        for key in SAME
        if config.get(key) != found.engine.pretrained.get(key)
    ]
    tokenizer = model / "tokenizer.json"
    if not tokenizer.is_file():
        problems.append(ConfigError("there is no tokenizer.json", where=str(model), fix="give the model's folder"))
    elif (highest := model_folder.highest_token_id(tokenizer)) >= found.engine.pretrained["vocab_size"]:
        problems.append(
            ConfigError(
                f"the tokenizer's ids go up to {highest}, the engine's vocabulary has "
                f"{found.engine.pretrained['vocab_size']}",
                where=str(tokenizer),
                fix="give the folder of the model that the engine was made of",
            )
        )
    raise_all(problems)
