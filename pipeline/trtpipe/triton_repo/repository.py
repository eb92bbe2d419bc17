"""The stage ``package``: an engine becomes a release, which is a model repository with its engine beside it.

release/
├── engine/                    the engine folder, hard-linked
├── monitoring/                Grafana dashboard, Prometheus alert rules
└── model_repository/
    ├── preprocessing/         config.pbtxt, 1/model.py and its modules
    ├── tensorrt_llm/
    ├── postprocessing/
    ├── ensemble/              config.pbtxt, 1/ (empty: Triton wants a version folder)
    └── tensorrt_llm_bls/      config.pbtxt, 1/model.py and its modules
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer

from trtpipe import core
from trtpipe.config.target import TritonModels
from trtpipe.core import digest, golden_ids, token_bytes
from trtpipe.core.artifacts import RECORD
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.runner import Making, Stage
from trtpipe.errors import ConfigError
from trtpipe.triton_repo import configs, contract, metric_families, monitoring, overlays, pbtxt
from trtpipe.triton_repo.overlays import NONE, Merged, Overlays

if TYPE_CHECKING:
    from collections.abc import Iterable

MODELS = Path(__file__).parent / "models"
CHAT = Path(core.__file__).parent / "chat.py"
GOLDEN = Path(golden_ids.__file__)
TOKEN_BYTES = Path(token_bytes.__file__)
CONTRACT = Path(contract.__file__)
REQUEST = (MODELS / "parameters.py", MODELS / "request_name.py")
TEXT = (TOKEN_BYTES, MODELS / "detokenizer.py", MODELS / "answer.py")

# The modules each model runs, beside its own folder under ``models``. They import each other by plain names.
SHARED = {
    "preprocessing": (CHAT, GOLDEN, TOKEN_BYTES, *REQUEST),
    "tensorrt_llm": (CHAT, *TEXT, Path(metric_families.__file__), *REQUEST),
    "postprocessing": (CHAT, TOKEN_BYTES),
    "tensorrt_llm_bls": (CHAT, CONTRACT, *TEXT, *REQUEST),
}
VERSION = "1"
# A release can be moved by copying its files; a folder without any would get lost on the way.
EMPTY_FOLDER_NOTE = "This folder holds no code: the ensemble is what config.pbtxt says.\n"
BACKEND_NOTE = "This folder holds no code: the backend that config.pbtxt names runs the engine.\n"


class Packaging(BaseModel):
    """What decides a release, apart from the engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    execution_environment: str = Field(description="Absolute path of the Python environment that holds vLLM.")
    template_date: str = Field(description="The day that the chat template sees, the one of calibration (ISO 8601).")
    models: TritonModels = TritonModels()

    def engine(self, *, has_golden: bool) -> configs.LocalEngine:
        return configs.LocalEngine(self.execution_environment, self.template_date, self.models, has_golden)


def stage(engine: Path, engine_digest: str, packaging: Packaging, site: Overlays = NONE) -> Stage:
    """Build the stage for an engine folder (one with an engine.json).

    Raises ConfigError if it is none, and for overlays that the configs can't have.
    """
    if not (engine / "engine.json").is_file():
        raise ConfigError(
            "not an engine folder: it has no engine.json", where=str(engine), fix="build the engine first"
        )
    local = packaging.engine(has_golden=(engine / golden_ids.FILE).is_file())
    merged = overlays.merge(configs.build(local), site, None)
    return Stage(
        name="package",
        kind="release",
        revision=4,
        inputs={"engine": engine_digest, "models": code_digest(SHARED), **overlays.digest_of(site)},
        parameters=packaging,
        versions={},
        make=lambda making: _make(making, engine, packaging.template_date, merged),
    )


def judge(packaging: Packaging, site: Overlays) -> None:
    """Raise ConfigError or Problems for overlays that the configs can't have, whichever engine it will be."""
    overlays.merge(configs.build(packaging.engine(has_golden=True)), site, None)


def code_digest(models: Iterable[str]) -> str:
    """Return the digest over every module of these models."""
    return digest.of_value({model: {path.name: digest.of_file(path) for path in modules(model)} for model in models})


def modules(model: str) -> list[Path]:
    """Return the modules that one model runs."""
    return [*sorted((MODELS / model).glob("*.py")), *SHARED[model]]


def _make(making: Making, engine: Path, template_date: str, merged: Merged) -> None:
    require_decoder(engine / "tokenizer.json")
    try_golden(making, engine, engine, template_date)
    link_engine(making, engine)
    write_models(making, merged)


def write_models(making: Making, merged: Merged) -> None:
    """Write the model repository: configs, the code of models that run in Python, what watches over its metrics."""
    for note in merged.notes:
        making.note(note)
    repository = making.folder / "model_repository"
    for name, config in merged.configs.items():
        version = repository / name / VERSION
        version.mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(pbtxt.render(config), encoding="utf-8")
        if config.backend == "python":
            for module in modules(name):
                shutil.copyfile(module, version / module.name)
        else:
            (version / "README").write_text(BACKEND_NOTE if config.backend else EMPTY_FOLDER_NOTE, encoding="utf-8")
    (making.folder / "monitoring").mkdir()
    for file, text in monitoring.files().items():
        (making.folder / "monitoring" / file).write_text(text, encoding="utf-8")
    making.figures |= {"models": sorted(merged.configs)}


def require_decoder(tokenizer: Path) -> None:
    """Raise ConfigError where the served models could not make text of the tokenizer's tokens."""
    try:
        token_bytes.TokenBytes(Tokenizer.from_file(str(tokenizer)))
    except token_bytes.DecoderError as fault:
        raise ConfigError(str(fault), where=str(tokenizer), fix="take a model with a tokenizer of that kind") from None


def try_golden(making: Making, engine: Path, tokenizer: Path, template_date: str) -> None:
    """Raise ConfigError where this tokenizer makes other ids of the engine's golden prompts; note where it has none."""
    path = engine / golden_ids.FILE
    if not path.is_file():
        making.note(
            f"the ids of served prompts are compared with none of calibration: the engine has no {golden_ids.FILE}. "
            "`calibrate` writes it; copied into the checkpoint that is built, it comes along"
        )
        return
    reading = ChatTokenizer.load(tokenizer, date=template_date)
    try:
        known = golden_ids.Golden.read(path)
        known.require(
            lambda prompt: reading.encode_chat(prompt.messages),
            reading.tokenizer.id_to_token,
            golden_ids.Surroundings.here(tokenizer, template_date),
        )
    except golden_ids.GoldenError as fault:
        raise ConfigError(str(fault), where=str(tokenizer), fix=golden_ids.FIX) from None
    making.figures |= {"golden_prompts": len(known.prompts)}


def link_engine(making: Making, engine: Path) -> None:
    """Hard-link the engine's files into the release; copy, and say so, where linking is impossible."""
    linked = copied = 0
    for path in sorted(engine.rglob("*")):
        if not path.is_file() or path == engine / RECORD:
            continue
        goal = making.folder / "engine" / path.relative_to(engine)
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, goal)
            linked += 1
        except OSError:
            shutil.copyfile(path, goal)
            copied += 1
    if copied:
        making.note(f"{copied} engine file(s) copied instead of linked: they are on another file system")
    making.figures |= {"engine_files": linked + copied}
