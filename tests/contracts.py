"""What each kind of artifact promises to the stages after it, and how to see whether one keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trtpipe.cli.outcome import KEY_FIGURES
from trtpipe.core import artifacts, scores
from trtpipe.core.artifacts import Artifact, Kind

FILES: dict[Kind, tuple[str, ...]] = {
    "model": ("config.json", "*.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"),
    "prompt-set": ("calibration.jsonl", "heldout.jsonl", "golden.json"),
    "checkpoint": (
        "config.json",
        "*.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "quantization.json",
        "golden.json",
    ),
    "engine": ("engine.json", "config.json", "*.safetensors", "tokenizer.json", "golden.json"),
    "release": (
        "engine/engine.json",
        "model_repository/ensemble/config.pbtxt",
        "model_repository/preprocessing/1/model.py",
        "model_repository/preprocessing/1/chat.py",
        "model_repository/preprocessing/1/golden_ids.py",
        "model_repository/tensorrt_llm/1/model.py",
        "model_repository/postprocessing/1/model.py",
        "model_repository/tensorrt_llm_bls/1/model.py",
    ),
    "scores": ("scores.npz",),
    "verdict": ("verdict.json", "verdict.txt", "verdict.html"),
}
ROW = {"id", "segment", "messages", "tools", "response", "ids", "prompt_tokens", "score_from"}


def broken(artifact: Artifact) -> list[str]:
    """Return every promise of its kind that an artifact does not keep."""
    artifacts.verify(artifact)
    record = artifact.record
    faults = [f"no {pattern}" for pattern in FILES[record.kind] if not list(artifact.path.glob(pattern))]
    faults += [f"no figure {name}" for name in KEY_FIGURES[record.parts.stage] if name not in record.figures]
    if artifact.id != record.key[: len(artifact.id)]:
        faults.append("the folder is not called by the key")
    if record.kind in CHECKS:
        faults += CHECKS[record.kind](artifact.path)
    return faults


def _prompt_set(path: Path) -> Iterator[str]:
    text = (path / artifacts.RECORD).read_text("utf-8")
    golden = "".join(file.read_text("utf-8") for file in path.glob("golden.json"))
    for name in ("calibration", "heldout"):
        for row in map(json.loads, (path / f"{name}.jsonl").read_text("utf-8").strip().split("\n")):
            if row.keys() != ROW:
                yield f"{name} {row['id']}: {sorted(row)}"
            if not 1 <= row["score_from"] < len(row["ids"]) or row["prompt_tokens"] > len(row["ids"]):
                yield f"{name} {row['id']}: positions"
            if row["messages"][-1]["content"] in text:
                yield f"{name} {row['id']}: its text stands in the record"
            if json.dumps(row["messages"][-1]["content"], ensure_ascii=False) in golden:
                yield f"{name} {row['id']}: its text is a golden prompt"


def _checkpoint(path: Path) -> Iterator[str]:
    config = _json(path / "config.json").get("quantization_config", {})
    if config.get("quant_method") != "compressed-tensors":
        yield f"quantization_config: {config}"
    if "kv_cache_scheme" not in config:
        yield "no kv_cache_scheme"
    if list(path.glob("**/.*")):
        yield "working files are left"


def _engine(path: Path) -> Iterator[str]:
    wanted = {"kind", "engine_version", "arguments", "environment", "resolved", "golden"}
    if _json(path / "engine.json").keys() != wanted:
        yield f"engine.json: {sorted(_json(path / 'engine.json'))}"


def _release(path: Path) -> Iterator[str]:
    yield from _engine(path / "engine")
    for config in path.glob("model_repository/*/config.pbtxt"):
        if str(path) in config.read_text("utf-8"):
            yield f"{config.parent.name}: names its own place, so the release can't be moved"


def _scores(path: Path) -> Iterator[str]:
    for file in path.glob("*.npz"):
        if not scores.load(file).tokens:
            yield f"{file.name}: no tokens"


def _verdict(path: Path) -> Iterator[str]:
    found = _json(path / "verdict.json")
    if found["verdict"] not in ("pass", "fail", "inconclusive"):
        yield f"verdict: {found['verdict']}"


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


CHECKS: dict[Kind, Callable[[Path], Iterator[str]]] = {
    "prompt-set": _prompt_set,
    "checkpoint": _checkpoint,
    "engine": _engine,
    "release": _release,
    "scores": _scores,
    "verdict": _verdict,
}
