"""Two gloo ranks share the prompts and end in the checkpoint of one process, but for the order of sums."""

from __future__ import annotations

import json
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from safetensors.torch import load_file

from trtpipe.core import digest
from trtpipe.errors import ConfigError, EnvironmentUnfit, TrtpipeError
from trtpipe.quantization import device, worker
from trtpipe.quantization.compressed_tensors import SYMMETRIC

# Sums in another order differ in their last bits, which turns a code that lies between two. Without compensation
# such a code stands alone; with it the columns that follow answer to it, and the next layer's inputs change.
# In bfloat16, batches of another shape also round activations differently.
FLIPPED_SHARE_MAX = {
    torch.float32: {"awq": 0.001, "awq+clip+round": 0.005},
    torch.bfloat16: {"awq": 0.02, "awq+clip+round": 0.1},
}
ERROR_TOLERANCE = {torch.float32: 0.05, torch.bfloat16: 0.2}


class Events:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def send(self, event: str, **fields: Any) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)


def made(tmp_path: Path, model: Path, processes: int, recipe: str = "awq") -> dict[str, Any]:
    prompts = tmp_path / "calibration.jsonl"
    generator = torch.Generator().manual_seed(5)
    rows = [torch.randint(0, 96, (length,), generator=generator).tolist() for length in range(20, 100, 5)]
    prompts.write_text("".join(json.dumps({"ids": row}) + "\n" for row in rows))
    folder = tmp_path / f"{processes} processes"
    folder.mkdir()
    job = {
        "model": str(model), "prompts": str(prompts), "folder": str(folder), "processes": processes,
        "recipe": recipe, "group_size": 64, "alpha_grid_points": 4, "symmetric": True,
        "inputs": "quantized", "kv_scales": "separate",
    }  # fmt: skip
    return {**worker.work(job, Events()), "folder": folder}  # type: ignore[arg-type]


def codes(folder: Path) -> torch.Tensor:
    """The codes of the first layer."""
    shifts = torch.arange(0, 32, 4, dtype=torch.int32)
    packed = [
        tensor.flatten()
        for name, tensor in sorted(load_file(folder / "model-00001-of-00003.safetensors").items())
        if name.endswith("weight_packed")
    ]
    return (torch.cat(packed)[:, None] >> shifts & 15) + SYMMETRIC[0]


@pytest.mark.parametrize("recipe", ["awq", "awq+clip+round"])
def test_two_ranks_give_the_codes_of_one_process(tmp_path: Path, recipe: str) -> None:
    model, dtype = tiny.save(tmp_path / "model"), device.choose().dtype
    alone, shared = (made(tmp_path, model, processes, recipe) for processes in (1, 2))
    assert shared["calibration_tokens"] == alone["calibration_tokens"]
    differing = float((codes(alone["folder"]) != codes(shared["folder"])).float().mean())
    assert differing <= FLIPPED_SHARE_MAX[dtype][recipe]
    assert sorted(path.name for path in shared["folder"].iterdir()) == sorted(
        path.name for path in alone["folder"].iterdir()
    )
    for one, other in zip(alone["layers"], shared["layers"], strict=True):
        assert one["key_amax"] == pytest.approx(other["key_amax"], rel=ERROR_TOLERANCE[dtype])
        for error, again in zip(one["errors"], other["errors"], strict=True):
            assert error["tokens"] == again["tokens"]
            assert error["final"] == pytest.approx(again["final"], rel=ERROR_TOLERANCE[dtype])


def test_a_ranks_fault_is_located_like_any_other(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    shard = model / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    before = digest.of_folder(model)
    with pytest.raises(ConfigError, match="not a whole safetensors file"):
        made(tmp_path, model, 2)
    assert digest.of_folder(model) == before


def test_more_processes_than_prompts_are_refused_before_any_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="17 processes share 16 calibration prompts") as caught:
        made(tmp_path, tiny.save(tmp_path / "model"), 17)
    assert caught.value.where == "quantization.processes"


def test_a_full_disk_in_a_rank_is_told_as_such(tmp_path: Path) -> None:
    """In every rank: the file system of the folder refuses files larger than some bytes."""
    model = tiny.save(tmp_path / "model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
        with pytest.raises(TrtpipeError, match="File too large") as caught:
            made(tmp_path, model, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert {type(fault) for fault in caught.value.each()} == {EnvironmentUnfit}
