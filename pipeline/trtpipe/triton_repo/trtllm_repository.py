"""The stage ``package`` of a TensorRT-LLM engine: its release, for Triton's own backend.

release/
├── engine/                    the engine folder, hard-linked, its lock among the files
├── tokenizer/                 what tokenizing and the chat template need of the model's folder
├── monitoring/                Grafana dashboard, Prometheus alert rules
├── model_repository/          as of the local engine, but tensorrt_llm has no code: its backend is in C++
└── launch/                    how to start it: a launcher of its own, compose, Kubernetes, systemd
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from trtpipe.config.target import BackendModels
from trtpipe.core import digest, golden_ids, model_folder
from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.core.runner import Making, Stage
from trtpipe.errors import ConfigError
from trtpipe.triton_repo import configs, overlays, repository, repository_check
from trtpipe.triton_repo.engine_parameters import EngineParameters
from trtpipe.triton_repo.overlays import Merged, Overlays

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOKENIZER = "tokenizer"
TOKENIZER_FOLDER = f"../../{TOKENIZER}"  # seen from a model's folder, as ``configs.ENGINE_FOLDER`` is
LAUNCH = "launch"
PYTHON_MODELS = ("preprocessing", "postprocessing", "tensorrt_llm_bls")


class Packaging(BaseModel):
    """What decides a release, apart from engine and tokenizer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_max: int = Field(description="Most requests of one step: the engine's max_batch_size.")
    kv_memory_share: float = Field(description="Share of the memory that the loaded engine leaves, for the KV cache.")
    kv_reuse: bool
    chunked_context: bool
    scheduler_policy: Literal["guaranteed_no_evict", "max_utilization"] = "guaranteed_no_evict"
    load_time_limit_s: float = Field(description="A launched engine must answer within this time.")
    template_date: str = Field(description="The day that the chat template sees (ISO 8601).")
    models: BackendModels = BackendModels()

    def engine(self, *, has_golden: bool) -> configs.TensorrtLlmEngine:
        parameters = EngineParameters(
            engine_folder=configs.ENGINE_FOLDER,
            tokenizer_folder=TOKENIZER_FOLDER,
            beam_width_max=1,
            kv_memory_share=self.kv_memory_share,
            kv_reuse=self.kv_reuse,
            kv_host_bytes=0,
            chunked_context=self.chunked_context,
            scheduler_policy=self.scheduler_policy,
        )
        return configs.TensorrtLlmEngine(
            parameters, self.template_date, self.requests_max, self.models, has_golden=has_golden
        )


@dataclass(frozen=True)
class Launch:
    """``files``: texts by their path within ``launch``; ``notes``: what a person should know of them."""

    files: Mapping[str, str]
    notes: list[str]


def stage(engine: Path, engine_digest: str, model: Path, launch: Launch, packaging: Packaging, site: Overlays) -> Stage:
    """Build the stage. ``model``: the folder whose tokenizer the engine's model has.

    Raises ConfigError for overlays that the configs can't have.
    """
    built = configs.build(packaging.engine(has_golden=(engine / golden_ids.FILE).is_file()))
    merged = overlays.merge(built, site, engine)
    files = [model / name for name in model_folder.TOKENIZER_FILES if (model / name).is_file()]
    return Stage(
        name="package",
        kind="release",
        revision=1,
        inputs={
            "engine": engine_digest,
            "tokenizer": digest.of_value({path.name: digest.of_file(path) for path in files}),
            "models": repository.code_digest(PYTHON_MODELS),
            "launch": digest.of_value(dict(launch.files)),
            **overlays.digest_of(site),
        },
        parameters=packaging,
        versions={},
        make=lambda making: _make(making, engine, files, launch, packaging.template_date, merged),
    )


def _make(making: Making, engine: Path, files: list[Path], launch: Launch, template_date: str, merged: Merged) -> None:
    tokenizer = making.folder / TOKENIZER
    tokenizer.mkdir()
    for path in files:
        shutil.copyfile(path, tokenizer / path.name)
    _require_tokenizer(tokenizer, files[0].parent, template_date)
    repository.try_golden(making, engine, tokenizer, template_date)
    repository.link_engine(making, engine)
    repository.write_models(making, merged)
    repository_check.check(making.folder)
    for name, text in launch.files.items():
        path = making.folder / LAUNCH / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for note in launch.notes:
        making.note(note)


def _require_tokenizer(tokenizer: Path, model: Path, template_date: str) -> None:
    """Raise ConfigError where the served models could not use it."""
    try:
        ChatTokenizer.load(tokenizer, date=template_date)
    except ChatError as fault:
        raise ConfigError(
            f"the model's tokenizer can't be used: {fault}", where=str(model), fix="add the missing file there"
        ) from None
    repository.require_decoder(tokenizer / "tokenizer.json")
