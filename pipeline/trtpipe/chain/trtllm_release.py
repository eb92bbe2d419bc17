"""A TensorRT-LLM engine becomes a release, on a machine that may serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.chain import servable
from trtpipe.core import artifacts, model_folder
from trtpipe.engines.trtllm.built import lock
from trtpipe.engines.trtllm.launch import release_files, serving
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.triton_repo import trtllm_repository

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner
    from trtpipe.core.store import Store
    from trtpipe.engines.trtllm.built.inspection import Inspection
    from trtpipe.engines.trtllm.launch.line import Ports

# Key of the model's config.json -> of the engine's `pretrained_config`: they tell a wrong model's folder.
SAME = ("hidden_size", "num_hidden_layers", "num_attention_heads")


def newest_engine(store: Store) -> Path:
    """Return the newest TensorRT-LLM engine of the workspace. Raises ConfigError where there is none."""
    engines = [engine.path for engine in store.all("engine") if servable.is_tensorrt_llm(engine.path)]
    if not engines:
        raise ConfigError(
            "there is no TensorRT-LLM engine yet", where=str(store.root), fix="trtpipe build-engine --target FILE"
        )
    return engines[-1]


def package(runner: Runner, engine: Path, model: Path, template_date: str, ports: Ports) -> Artifact:
    """Make the release. ``model``: the folder with the tokenizer; ``template_date``: ISO 8601.

    ``ports``: of the host, where the release's compose.yaml shows the server.

    Raises what ``servable.require_engine`` raises, and ConfigError for a model that is not the engine's.
    """
    found, asked = servable.require_engine(engine)
    artifact = artifacts.read(engine)
    _require_same_model(found, model)
    target = asked.target
    paged = bool(found.engine.config["build_config"]["plugin_config"]["use_paged_context_fmha"])
    packaging = trtllm_repository.Packaging(
        requests_max=found.engine.config["build_config"]["max_batch_size"],
        kv_memory_share=target.kv_memory_share,
        kv_reuse=target.kv_reuse and paged,
        chunked_context=target.chunked_context and paged,
        template_date=template_date,
    )
    if not paged and (target.kv_reuse or target.chunked_context):
        runner.reporter.note("KV reuse and chunked context are off: the engine has no paged context FMHA (accepted)")
    kept = lock.read(engine)
    launch = trtllm_repository.Launch(release_files.files(engine, target, kept, ports), serving.notes(target, kept))
    return runner.obtain(trtllm_repository.stage(engine, artifact.digest, model, launch, packaging))


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
