"""A tiny model as a TensorRT-LLM checkpoint, by default of eight ranks, and builds of it by the stand-in, for tests."""

from __future__ import annotations

import atexit
import os
import shutil
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import yaml
from exports import canonical

from calibration.tiny import END, model_folder, row
from standins import trtllm_build as standin
from trtpipe.calibration import golden, tokens
from trtpipe.calibration.select import Candidate
from trtpipe.chain import plan as planning
from trtpipe.chain import trtllm_engine as chain
from trtpipe.chain.trtllm_checkpoint import Config
from trtpipe.core.artifacts import FOLDERS, RECORD
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.build import grammar
from trtpipe.quantization.exports import trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pytest

    from trtpipe.chain.plan import Planned
    from trtpipe.chain.trtllm_engine import Foretold
    from trtpipe.core.artifacts import Artifact
    from trtpipe.errors import TrtpipeError

TARGET: dict[str, Any] = {
    "kind": "tensorrt-llm", "gpu": "a100-80gb", "tensor_parallel": 8, "weights": "w4a16_awq", "group_size": 64,
    "kv_dtype": "fp8_e4m3", "kv_reuse": False, "chunked_context": False, "max_seq_len": 128, "answer_tokens_max": 64,
    "sanity": False,  # the model has random weights, and most tests are of something else
}  # fmt: skip


@cache
def _models(model_type: str, reuse: bool, ranks: int) -> tuple[Path, Path]:
    """Make the model and its checkpoint once a run: the folders are copied, never changed."""
    folder = Path(mkdtemp(prefix="trtpipe-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    biases = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj") if model_type == "qwen2" else ()
    canonical.make(folder / "model", model_type=model_type, biases=biases, vocab_size=END + 1, eos_token_id=END)
    model_folder(folder / "tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / "tokenizer" / name, folder / "model" / name)
    (folder / "checkpoint").mkdir()
    rows = [row(f"question {number} of a secret", name=str(number)) for number in range(7)]
    tokenizer = ChatTokenizer.load(folder / "model")
    chosen = [Candidate(counted, "chat", 1.0) for counted in tokens.count(rows, tokenizer)]
    golden.make(chosen, tokenizer, folder / "model", "2026-01-01").write(folder / "checkpoint")
    trtllm.plan(
        Checkpoint(folder / "model"), tensor_parallel=ranks, pipeline_parallel=1, dtype="bfloat16",
        kv_cache="model" if reuse else "fp8", pad_intermediate=False,
    ).write(folder / "checkpoint", Silent())  # fmt: skip
    return folder / "model", folder / "checkpoint"


@dataclass
class Site:
    """A folder with a model, its checkpoint, a target file and a store; ``programs``: for PATH."""

    folder: Path
    target: dict[str, Any] = field(default_factory=lambda: dict(TARGET))
    model_type: str = "llama"

    def __post_init__(self) -> None:
        model, checkpoint = _models(self.model_type, self.target["kv_dtype"] == "model", self.target["tensor_parallel"])
        shutil.copytree(model, self.model)
        shutil.copytree(checkpoint, self.checkpoint)
        self.write()

    def copy(self, folder: Path) -> Site:
        """Return this site in another folder, with a config, and without the programs."""
        copy: Site = object.__new__(Site)
        copy.folder, copy.target, copy.model_type = folder, dict(self.target), self.model_type
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("tensorrt-llm"))
        copy.write()
        copy.write_config()
        return copy

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def target_file(self) -> Path:
        return self.folder / "target.yaml"

    def write(self, **changes: Any) -> None:
        self.target |= changes
        self.target_file.write_text(yaml.safe_dump(self.target))

    @property
    def config_file(self) -> Path:
        return self.folder / "trtpipe.yaml"

    def write_config(self, **changes: Any) -> None:
        """Write a config of this model and target; its prompts are never read."""
        content = {"model": str(self.model), "target": str(self.target_file), "prompts": {"files": ["log.jsonl"]}}
        self.config_file.write_text(yaml.safe_dump(content | changes))

    @property
    def engines(self) -> Path:
        """Where finished engines lie."""
        return self.folder / FOLDERS["engine"]

    def leftovers(self) -> list[str]:
        """Return what lies where engines lie, apart from finished ones."""
        folders = self.engines.iterdir() if self.engines.exists() else ()
        return [path.name for path in folders if not (path / RECORD).is_file()]

    def on_path(self, monkeypatch: pytest.MonkeyPatch) -> Site:
        """Put the stand-in programs first on PATH."""
        monkeypatch.setenv("PATH", str(self.install()), prepend=os.pathsep)
        return self

    def install(self, **options: Any) -> Path:
        return standin.install(self.folder / "tensorrt-llm", grammar.FILE, **options)

    def plan(self) -> tuple[Planned, Foretold]:
        planned = planning.plan(self.model, self.target_file, (), None)
        return planned, chain.foretell(planned, self.checkpoint, Config(self.config_file))

    def build(self) -> Artifact:
        _, foretold = self.plan()
        return chain.build(Runner(Store(self.folder), Silent()), foretold, self.checkpoint)


def whats(caught: pytest.ExceptionInfo[TrtpipeError]) -> str:
    """Return what is wrong, a line a problem."""
    return "\n".join(one.what for one in caught.value.each())
