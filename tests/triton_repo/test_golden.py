"""The preprocessing model tries the golden prompts as it loads: the module of a release, and a real Triton."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from calibration.tiny import model_folder, row
from trtpipe.calibration import golden, tokens
from trtpipe.calibration.select import Candidate
from trtpipe.chain.served import free_addresses
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.golden_ids import FILE, FIX, Golden
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.triton_repo import installation, preprocessed, repository, triton_log
from workspaces import REPOSITORY

DATE = "2026-01-01"


class Unloadable(Exception):  # noqa: N818 - Triton's own has no suffix either
    """What Triton's module for Python models has for this."""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release whose model wants BOS, with an engine that holds golden prompts and no weights."""
    engine = model_folder(tmp_path / "engine", add_bos_token=True)
    (engine / "engine.json").write_text(json.dumps({"kind": "vllm"}))
    tokenizer = ChatTokenizer.load(engine)
    rows = [row("who, " * number, "and why?", name=str(number)) for number in range(1, 8)]
    chosen = [Candidate(counted, "chat", 1.0) for counted in tokens.count([*rows, row("plain " * 9)], tokenizer)]
    golden.make(chosen, tokenizer, engine, DATE).write(engine)
    packaging = repository.Packaging(execution_environment=sys.prefix, template_date=DATE)
    return Runner(Store(tmp_path / "site"), Silent()).obtain(repository.stage(engine, "digest", packaging)).path


def without_bos(release: Path) -> None:
    """Make the tokenizer one that puts no BOS in front, as a folder of another origin may have it."""
    settings = release / "engine/tokenizer_config.json"
    changed = json.loads(settings.read_text()) | {"add_bos_token": False}
    settings.unlink()  # it is a link to the engine's own
    settings.write_text(json.dumps(changed))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(
        sys.modules, "triton_python_backend_utils", SimpleNamespace(TritonModelException=Unloadable)
    )  # fmt: skip
    path = repository.MODELS / "preprocessing" / "model.py"
    spec = importlib.util.spec_from_file_location("preprocessing_model", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def load(module: ModuleType, release: Path, **changes: str) -> Any:
    parameters = {"tokenizer_dir": "../../engine", "template_date": DATE, "golden_prompts": f"../../engine/{FILE}"}
    given = {name: {"string_value": value} for name, value in (parameters | changes).items()}
    model = module.TritonPythonModel()
    place = str(release / "model_repository/preprocessing")
    model.initialize({"model_config": json.dumps({"parameters": given, "input": []}), "model_repository": place})
    return model


def test_equal_ids_let_the_model_load(module: ModuleType, release: Path) -> None:
    load(module, release)
    without_bos(release)
    load(module, release, golden_prompts="")


def test_a_prompt_without_its_bos_keeps_the_model_from_loading(module: ModuleType, release: Path) -> None:
    without_bos(release)
    with pytest.raises(Unloadable) as caught:
        load(module, release)
    said = str(caught.value)
    assert said.startswith("golden prompt 1 of 5 (2 message(s), ")
    assert "position 0 is 258 '<turn>' instead of 256 '<s>'; BOS (256) stands 0 times in front instead of once" in said
    assert "Since calibration: tokenizer_config.json is another file" in said
    assert said.endswith(FIX)
    for prompt in json.loads((release / "engine" / FILE).read_text())["prompts"]:
        assert not any(message["content"] in said for message in prompt["messages"]), "no prompt in the log"


def test_a_missing_or_damaged_file_keeps_it_from_loading_too(module: ModuleType, release: Path) -> None:
    (release / "engine" / FILE).write_text("{")
    with pytest.raises(Unloadable, match="can't be read"):
        load(module, release)
    with pytest.raises(Unloadable, match="FileNotFoundError"):
        load(module, release, golden_prompts="../../engine/none.json")


@pytest.mark.e2e
@pytest.mark.parametrize("changed", [False, True])
def test_triton_loads_preprocessing_only_with_the_ids_of_calibration(
    release: Path, tmp_path: Path, changed: bool
) -> None:
    triton = installation.find(REPOSITORY / ".venv-triton")
    triton.assemble_backends(tmp_path / "backends")
    if changed:
        without_bos(release)
    prefix, log, addresses = f"trtpipe_golden_{os.getpid()}_", tmp_path / "triton.log", free_addresses()
    words = [
        str(triton.program), f"--model-repository={release / 'model_repository'}",
        f"--backend-directory={tmp_path / 'backends'}", f"--cache-directory={triton.caches}",
        f"--backend-config=python,shm-region-prefix-name={prefix}", "--disable-auto-complete-config",
        "--model-control-mode=explicit", "--load-model=preprocessing", *addresses.options(),
    ]  # fmt: skip
    supervising = [sys.executable, "-m", "trtpipe.triton_repo.supervisor", str(os.getpid()), prefix, "20"]
    loaded = "successfully loaded 'preprocessing'"
    with log.open("wb") as file:
        server = subprocess.Popen([*supervising, *words], env=triton.variables(), stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + 120
        while server.poll() is None and loaded not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert (server.poll() is not None) == changed, log.read_text()
        for prompt in [] if changed else Golden.read(release / "engine" / FILE).prompts:
            assert preprocessed.ids(addresses.http_url, prompt.text_input) == prompt.ids
    finally:
        server.terminate()
        server.wait()
    assert (loaded in log.read_text()) != changed
    if changed:
        assert "BOS (256) stands 0 times in front instead of once" in triton_log.why_ended(log)
        assert FIX in triton_log.why_ended(log)
