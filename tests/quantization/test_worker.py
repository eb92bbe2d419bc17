from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from safetensors.torch import load_file

from trtpipe.core import digest
from trtpipe.errors import ConfigError
from trtpipe.quantization import worker
from trtpipe.quantization.stage import group_size_for, summary


class Events:
    """Stops the work, as a kill would, when a layer number is reached."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.notes: list[str] = []

    def progress(self, label: str, done: int, total: int) -> None:
        if done == self.stop_at:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


def job(tmp_path: Path, name: str, model: Path) -> dict[str, Any]:
    prompts = tmp_path / "calibration.jsonl"
    rows = [{"ids": torch.randint(0, 96, (length,)).tolist()} for length in (20, 20, 31)]
    if not prompts.exists():
        prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return {
        "model": str(model), "prompts": str(prompts), "folder": str(folder),
        "recipe": "awq", "group_size": 64, "alpha_grid_points": 4, "symmetric": True, "inputs": "quantized",
        "kv_scales": "separate", "processes": 1,
    }  # fmt: skip


def test_a_stopped_run_goes_on_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    straight = job(tmp_path, "straight", model)
    result = worker.work(straight, Events())  # type: ignore[arg-type]
    stopped, events = job(tmp_path, "stopped", model), Events(stop_at=1)
    with pytest.raises(KeyboardInterrupt):
        worker.work(stopped, events)  # type: ignore[arg-type]
    again = Events()
    worker.work(stopped, again)  # type: ignore[arg-type]
    assert again.notes[2:] == [
        "float32 weights that stay unquantized are stored rounded to bfloat16",
        "going on at layer 1 of 2 where an earlier run ended",
    ]
    first, second = digest.of_folder(Path(straight["folder"])), digest.of_folder(Path(stopped["folder"]))
    assert first == second
    assert result["calibration_tokens"] == 71


@pytest.mark.parametrize("model_type", tiny.OWN)
def test_the_checkpoint_stands_for_nearly_the_same_model(tmp_path: Path, model_type: str) -> None:
    model = tiny.own(tmp_path / "model", model_type)
    made = job(tmp_path, "out", model)
    worker.work(made, Events())  # type: ignore[arg-type]
    plain = tiny.read_back(Path(made["folder"]), model, tmp_path / "plain")
    ids = torch.randint(0, 96, (2, 40))
    with torch.inference_mode():
        before, after = (tiny.model_of(folder)(ids).logits for folder in (model, plain))
    assert 0 < float((after - before).norm() / before.norm()) < 0.5


def test_linears_without_codes_are_named_in_the_config(tmp_path: Path) -> None:
    made = job(tmp_path, "out", tiny.own(tmp_path / "model", "qwen2_moe"))
    worker.work(made, Events())  # type: ignore[arg-type]
    config = json.loads((Path(made["folder"]) / "config.json").read_text("utf-8"))
    assert config["quantization_config"]["ignore"] == [
        "lm_head", r"re:.*\.mlp\.gate$", r"re:.*\.mlp\.shared_expert_gate$"
    ]  # fmt: skip


def test_a_tensor_with_nan_is_named(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    model = tiny.save(tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"model\.layers\.1\.mlp\.up_proj\.weight.* NaN"):
        worker.work(job(tmp_path, "out", model), Events())  # type: ignore[arg-type]


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    shard = model / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(ConfigError, match="not a whole safetensors file") as caught:
        worker.work(job(tmp_path, "out", model), Events())  # type: ignore[arg-type]
    assert caught.value.where == str(shard)


@pytest.mark.parametrize(("hidden", "asked", "size"), [(256, "auto", 128), (192, "auto", 64), (256, 64, 64)])
def test_group_size(tmp_path: Path, hidden: int, asked: int | str, size: int) -> None:
    config = {
        "hidden_size": hidden,
        "intermediate_size": 512,
        "num_attention_heads": 2,
        "head_dim": hidden // 2,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert group_size_for(tmp_path, asked) == size


def test_an_experts_width_counts(tmp_path: Path) -> None:
    config = {"hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 192, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="128 does not divide moe_intermediate_size 192"):
        group_size_for(tmp_path, 128)


def test_groups_without_tokens_do_not_count_in_the_summary() -> None:
    seen = {"tokens": 9, "plain_rounding": 0.5, "awq": 0.25, "final": 0.125}
    idle = {"tokens": 0, "plain_rounding": None, "awq": None, "final": None}
    assert summary([{"errors": [seen, idle]}]) == {
        "relative_error_plain_rounding_mean": 0.5, "relative_error_awq_mean": 0.25, "relative_error_final_mean": 0.125
    }  # fmt: skip


def test_an_indivisible_width_is_named(tmp_path: Path) -> None:
    config = {"hidden_size": 192, "intermediate_size": 512, "num_attention_heads": 3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="128 does not divide hidden_size 192") as caught:
        group_size_for(tmp_path, 128)
    assert caught.value.fix == "legal group sizes for this model: 64"
