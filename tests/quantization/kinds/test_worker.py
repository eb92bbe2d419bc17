"""Other quantizers' checkpoints taken over. Those marked with an environment need the real quantizer in it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from exports import readers
from safetensors.torch import save_file

from trtpipe.core.progress import Silent
from trtpipe.errors import ConfigError
from trtpipe.quantization import worker as own
from trtpipe.quantization.exports import autoawq
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.kinds import worker


class Events(Silent):
    def send(self, event: str, **fields: Any) -> None: ...


def rows(path: Path) -> Path:
    torch.manual_seed(1)
    ids = [{"ids": torch.randint(0, 96, (length,)).tolist()} for length in (20, 20, 31)]
    path.write_text("".join(json.dumps(row) + "\n" for row in ids))
    return path


def job(tmp_path: Path, model: Path, **changes: Any) -> dict[str, Any]:
    (tmp_path / "taken").mkdir()
    return {
        "model": str(model), "prompts": str(rows(tmp_path / "calibration.jsonl")), "folder": str(tmp_path / "taken"),
        "kind": "existing", "python": "", "existing": "", "group_size": 64, "kv_scales": "separate", **changes,
    }  # fmt: skip


def our_awq(tmp_path: Path, model: Path) -> tuple[Path, Path]:
    """Quantize asymmetrically with this program; return our checkpoint and its AutoAWQ form."""
    folder, exported = tmp_path / "ours", tmp_path / "autoawq"
    folder.mkdir()
    exported.mkdir()
    own.work(
        {"model": str(model), "prompts": str(rows(tmp_path / "rows.jsonl")), "folder": str(folder), "recipe": "awq",
         "group_size": 64, "alpha_grid_points": 4, "symmetric": False, "inputs": "quantized", "kv_scales": "separate",
         "processes": 1},
        Events(),  # type: ignore[arg-type]
    )  # fmt: skip
    autoawq.plan(Checkpoint(folder)).write(exported, Silent())
    return folder, exported


def require_near(model: Path, taken: Path, tmp_path: Path) -> None:
    tensors = {name: torch.tensor(tensor) for name, tensor in readers.folder(taken).items()
               if not name.endswith(("_packed", "_scale", "_shape", "_point"))}  # fmt: skip
    for name, (codes, scales) in readers.compressed_tensors(taken).items():
        wide = np.repeat(scales, codes.shape[1] // scales.shape[1], axis=1)
        tensors[f"{name}.weight"] = torch.tensor(codes * wide, dtype=torch.float32)
    plain = tmp_path / "plain"
    plain.mkdir()
    save_file(tensors, plain / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(model / "config.json", plain / "config.json")
    ids = torch.randint(0, 96, (2, 40))
    with torch.inference_mode():
        before, after = (tiny.model_of(folder)(ids).logits for folder in (model, plain))
    assert 0 < float((after - before).norm() / before.norm()) < 0.5


def test_an_autoawq_checkpoint_keeps_every_code(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    ours, exported = our_awq(tmp_path, model)
    result = worker.work(job(tmp_path, model, existing=str(exported)), Events())  # type: ignore[arg-type]
    assert result["notes"] == [
        "taken over: AutoAWQ, 4 bits, group size 64, with zero points; codes as they are, scales rounded to bfloat16"
    ]
    expected, found = readers.compressed_tensors(ours), readers.compressed_tensors(tmp_path / "taken")
    assert found.keys() == expected.keys()
    for name, (codes, scales) in expected.items():
        assert (found[name][0] == codes).all(), name
        assert (found[name][1] == scales).all(), name
    kept, made = (readers.folder(folder) for folder in (ours, tmp_path / "taken"))
    for name in [name for name in kept if name.endswith(("k_scale", "v_scale"))]:
        assert made[name] == pytest.approx(kept[name], rel=0.01), name


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    _, exported = our_awq(tmp_path, tiny.save(tmp_path / "model"))
    other = tiny.save(tmp_path / "other", intermediate_size=512)
    with pytest.raises(ConfigError, match="of another model: layer 0 differs in mlp"):
        worker.work(job(tmp_path, other, existing=str(exported)), Events())  # type: ignore[arg-type]


@pytest.mark.parametrize("kv_heads", [2, 4])  # 4: as many as query heads, so that o_proj's scale folds into v_proj
@pytest.mark.parametrize("kind", ["modelopt", "autoawq"])
def test_the_real_quantizer(tmp_path: Path, kind: str, kv_heads: int) -> None:
    environment = os.environ.get(f"TRTPIPE_TEST_{kind.upper()}")
    if not environment:
        pytest.skip(f"TRTPIPE_TEST_{kind.upper()} names no environment that has it")
    model = tiny.save(tmp_path / "model", num_key_value_heads=kv_heads)
    made = job(tmp_path, model, kind=kind, python=f"{environment}/bin/python")
    notes = worker.work(made, Events())["notes"]  # type: ignore[arg-type]
    plain = "self_attn.o_proj: rounded plainly here, since ModelOpt left it unquantized"
    assert (plain in notes) == (kind == "modelopt" and kv_heads == 2)
    assert not list((tmp_path / "taken").glob("**/.*"))
    require_near(model, tmp_path / "taken", tmp_path)
