"""The stage that makes a release of an engine."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models

from trtpipe.core import artifacts
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError
from trtpipe.triton_repo import monitoring, overlays, pbtxt, repository

INSTALLED = {"jinja2", "numpy", "tokenizers", "torch", "triton_python_backend_utils", "vllm"}
PACKAGING = repository.Packaging(execution_environment="/environment", template_date="2026-01-01")


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "sub").mkdir(parents=True)
    (folder / "engine.json").write_text(json.dumps({"kind": "vllm"}), encoding="utf-8")
    (folder / "sub" / "weights").write_bytes(b"weights")
    (folder / "record.json").write_text("{}", encoding="utf-8")
    save_tokenizer(folder, decoders.ByteLevel())
    return folder


def save_tokenizer(folder: Path, decoder: Any) -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.decoder = decoder
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def release(engine: Path, tmp_path: Path) -> artifacts.Artifact:
    return Runner(Store(tmp_path / "workspace"), Silent()).obtain(repository.stage(engine, "digest", PACKAGING))


def test_without_golden_prompts_the_record_says_so(release):
    assert any("the engine has no golden.json" in note for note in release.record.notes)


def test_the_engine_is_linked_not_copied(release, engine):
    assert (release.path / "engine" / "sub" / "weights").samefile(engine / "sub" / "weights")
    assert not (release.path / "engine" / "record.json").exists()


def test_every_model_has_its_config_and_a_version(release):
    repository_folder = release.path / "model_repository"

    for name in ("preprocessing", "tensorrt_llm", "postprocessing", "ensemble", "tensorrt_llm_bls"):
        text = (repository_folder / name / "config.pbtxt").read_text(encoding="utf-8")
        assert pbtxt.parse(text, name).name == name
        assert any((repository_folder / name / "1").iterdir())


@pytest.mark.parametrize("model", list(repository.SHARED))
def test_python_models_are_whole(release, model):
    """What a module imports lies beside it, or comes with the environment that the model runs in."""
    modules = list((release.path / "model_repository" / model / "1").glob("*.py"))
    known = {module.stem for module in modules} | INSTALLED | sys.stdlib_module_names

    assert (release.path / "model_repository" / model / "1" / "model.py") in modules
    for module in modules:
        assert imported(module) <= known, module.name


def imported(module: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_a_release_brings_its_dashboard_and_alert_rules(release):
    files = (release.path / "monitoring").iterdir()

    assert {file.name: file.read_text("utf-8") for file in files} == monitoring.files()


def test_models_find_the_engine_from_their_own_folder(release):
    config = pbtxt.parse((release.path / "model_repository/tensorrt_llm/config.pbtxt").read_text("utf-8"), "")
    engine_path = config.parameters["gpt_model_path"].string_value

    assert (release.path / "model_repository" / "tensorrt_llm" / engine_path / "engine.json").is_file()


def test_the_environment_and_the_engine_decide_the_key(engine):
    key = repository.stage(engine, "digest", PACKAGING).parts.key
    elsewhere = repository.Packaging(execution_environment="/other", template_date="2026-01-01")

    assert repository.stage(engine, "digest", elsewhere).parts.key != key
    assert repository.stage(engine, "other", PACKAGING).parts.key != key
    assert repository.stage(engine, "digest", PACKAGING).parts.key == key


def test_overlays_are_part_of_the_release_its_key_and_its_notes(engine, tmp_path):
    site = overlay(tmp_path, "preprocessing", "instance_group { count: 3 kind: KIND_CPU }")
    changed = repository.stage(engine, "digest", PACKAGING, site)
    release = Runner(Store(tmp_path / "workspace"), Silent()).obtain(changed)

    assert repository.stage(engine, "digest", PACKAGING).parts.key != changed.parts.key
    assert "count: 3" in (release.path / "model_repository/preprocessing/config.pbtxt").read_text("utf-8")
    assert any(note.startswith("preprocessing: instance_group not as generated") for note in release.record.notes)


def test_overlays_at_fault_are_refused_before_anything_is_written(engine, tmp_path):
    site = overlay(tmp_path, "tensorrt_llm", '\nparameters { key: "gpt_model_path" value { string_value: "" } }')

    with pytest.raises(ConfigError, match="`gpt_model_path` is empty") as caught:
        repository.stage(engine, "digest", PACKAGING, site)
    assert caught.value.where.endswith("tensorrt_llm.pbtxt:2")


def overlay(folder, model, text):
    """Write an overlay and return all of its folder."""
    (folder / "overlays").mkdir()
    (folder / "overlays" / f"{model}.pbtxt").write_text(text)
    return overlays.read(folder / "overlays")


def test_a_tokenizer_whose_text_is_not_understood_makes_no_release(engine, tmp_path):
    save_tokenizer(engine, decoders.WordPiece())
    store = Store(tmp_path / "workspace")

    with pytest.raises(ConfigError, match="WordPiece"):
        Runner(store, Silent()).obtain(repository.stage(engine, "digest", PACKAGING))


def test_a_folder_without_engine_json_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no engine\.json"):
        repository.stage(tmp_path, "digest", PACKAGING)
