from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exports import canonical, readers

from trtpipe.core.progress import Silent
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint

QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
LINEARS = ("attention.qkv", "attention.dense", "mlp.fc", "mlp.gate", "mlp.proj")


def export(
    source: Path, folder: Path, tensor_parallel: int = 1, pipeline_parallel: int = 1, **options: Any
) -> list[str]:
    folder.mkdir()
    chosen = {"dtype": "bfloat16", "kv_cache": "fp8", "pad_intermediate": False, **options}
    planned = trtllm.plan(
        Checkpoint(source), tensor_parallel=tensor_parallel, pipeline_parallel=pipeline_parallel, **chosen
    )
    planned.write(folder, Silent())
    return planned.notes


def require_memory(linears: readers.Linears, memory: canonical.Memory) -> None:
    assert linears.keys() == memory.linears.keys()
    for name, quantized in memory.linears.items():
        codes, scales = linears[name]
        rows, columns = quantized.codes.shape
        assert np.array_equal(codes[:rows, :columns], quantized.codes.numpy()), name
        assert np.array_equal(scales[:rows, : quantized.scales.shape[1]], quantized.scales.float().numpy()), name


@pytest.mark.parametrize(("tensor_parallel", "pipeline_parallel"), [(1, 1), (2, 1), (8, 1), (1, 3), (2, 2)], ids=str)
@pytest.mark.parametrize("kv_heads", [8, 2])
def test_ranks_put_together_are_the_codes_and_scales_in_memory(
    tmp_path: Path, tensor_parallel: int, pipeline_parallel: int, kv_heads: int
) -> None:
    memory = canonical.make(tmp_path / "source", num_key_value_heads=kv_heads)
    notes = export(tmp_path / "source", tmp_path / "out", tensor_parallel, pipeline_parallel)
    linears, others = readers.trtllm(tmp_path / "out")
    require_memory(linears, memory)
    for layer in range(3):
        scales = [memory.others[f"model.layers.{layer}.self_attn.{side}_scale"] for side in "kv"]
        kept = others[f"transformer.layers.{layer}.attention.kv_cache_scaling_factor"]
        assert kept.dtype == np.float32
        assert kept.tolist() == max(scales).tolist()
        norm = memory.others[f"model.layers.{layer}.post_attention_layernorm.weight"].float().numpy()
        assert np.array_equal(others[f"transformer.layers.{layer}.post_layernorm.weight"], norm)
        for linear in LINEARS:
            assert (others[f"transformer.layers.{layer}.{linear}.prequant_scaling_factor"] == 1).all()
    for ours, theirs in (("transformer.vocab_embedding", "model.embed_tokens"), ("lm_head", "lm_head")):
        assert np.array_equal(others[f"{ours}.weight"], memory.others[f"{theirs}.weight"].float().numpy())
    repeated = [note for note in notes if "repeated" in note]
    assert bool(repeated) == (tensor_parallel > kv_heads)
    assert len(list((tmp_path / "out").iterdir())) == tensor_parallel * pipeline_parallel + 1


def test_an_intermediate_size_of_odd_groups_is_padded_with_zeros(tmp_path: Path) -> None:
    """29568 = 231 groups of 128 at TP 8, scaled down: 960 = 15 groups of 64."""
    memory = canonical.make(tmp_path / "source", intermediate_size=960)
    notes = export(tmp_path / "source", tmp_path / "out", 8, pad_intermediate=True)
    linears, _ = readers.trtllm(tmp_path / "out")
    require_memory(linears, memory)
    for name in ("gate_proj", "up_proj"):
        codes, scales = linears[f"model.layers.1.mlp.{name}"]
        assert codes.shape == (1024, 512)
        assert not codes[960:].any()
        assert (scales[960:] == 1).all()
    codes, scales = linears["model.layers.1.mlp.down_proj"]
    assert codes.shape == (512, 1024)
    assert not codes[:, 960:].any()
    assert (scales[:, 15:] == 1).all()
    assert json.loads((tmp_path / "out/config.json").read_text())["intermediate_size"] == 1024
    assert "intermediate size 960 padded with zeros to 1024: group size 64 x TP 8 must divide it" in notes


def test_an_odd_vocabulary_gets_rows_that_the_engine_masks(tmp_path: Path) -> None:
    memory = canonical.make(tmp_path / "source", vocab_size=97, tie_word_embeddings=True)
    notes = export(tmp_path / "source", tmp_path / "out", 2)
    _, others = readers.trtllm(tmp_path / "out")
    table = memory.others["model.embed_tokens.weight"].float().numpy()
    for name in ("transformer.vocab_embedding.weight", "lm_head.weight"):
        assert others[name].shape == (98, 512)
        assert np.array_equal(others[name][:97], table)
        assert not others[name][97:].any()
    assert json.loads((tmp_path / "out/config.json").read_text())["vocab_size"] == 97
    assert any("1 zero rows added" in note for note in notes)
    assert any("written twice" in note for note in notes)


@pytest.mark.parametrize("tensor_parallel", [1, 4])
def test_qwen2_keeps_the_biases_of_a_ranks_heads(tmp_path: Path, tensor_parallel: int) -> None:
    memory = canonical.make(tmp_path / "source", model_type="qwen2", biases=QKV, num_key_value_heads=4)
    export(tmp_path / "source", tmp_path / "out", tensor_parallel)
    _, others = readers.trtllm(tmp_path / "out")
    whole = [memory.others[f"model.layers.2.{name}.bias"].float().numpy() for name in QKV]
    for rank, bias in enumerate(others["transformer.layers.2.attention.qkv.bias"]):
        parts = [part.reshape(tensor_parallel, -1)[rank] for part in whole]
        assert np.array_equal(bias, np.concatenate(parts))
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["architecture"], config["qwen_type"], config["attn_bias"]) == ("Qwen2ForCausalLM", "qwen2", True)


def test_a_bias_that_the_engine_lacks_is_refused(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source", biases=("self_attn.q_proj",))
    with pytest.raises(ConfigError, match=r"q_proj\.bias` is present"):
        export(tmp_path / "source", tmp_path / "out")


def test_llama_biases_are_whole_where_columns_are_split(tmp_path: Path) -> None:
    memory = canonical.make(tmp_path / "source", attention_bias=True, biases=(*QKV, "self_attn.o_proj"))
    export(tmp_path / "source", tmp_path / "out", 2)
    _, others = readers.trtllm(tmp_path / "out")
    whole = memory.others["model.layers.0.self_attn.o_proj.bias"].float().numpy()
    assert np.array_equal(others["transformer.layers.0.attention.dense.bias"], np.stack([whole, whole]))


def test_a_stated_head_width_decides_the_rows(tmp_path: Path) -> None:
    memory = canonical.make(tmp_path / "source", head_dim=128)
    export(tmp_path / "source", tmp_path / "out", 2)
    require_memory(readers.trtllm(tmp_path / "out")[0], memory)
    assert readers.safetensors(tmp_path / "out/rank1.safetensors")[
        "transformer.layers.0.attention.qkv.weight"
    ].shape == (
        (8 + 2 * 8) * 128 // 2 // 2,
        512,
    )


def test_the_kv_cache_may_keep_the_models_type(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    notes = export(tmp_path / "source", tmp_path / "out", kv_cache="model", dtype="float16")
    assert not any("kv_cache" in name for name in readers.folder(tmp_path / "out"))
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["dtype"], config["quantization"]["kv_cache_quant_algo"]) == ("float16", None)
    assert any("KV scales of the checkpoint are left out" in note for note in notes)


def test_rotary_values_are_kept(tmp_path: Path) -> None:
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}  # fmt: skip
    canonical.make(tmp_path / "source", rope_parameters=scaling | {"rope_theta": 5e5})
    export(tmp_path / "source", tmp_path / "out")
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["rotary_base"] == 5e5
    assert config["rotary_scaling"] == scaling | {"type": "llama3"}
    canonical.make(tmp_path / "old", rope_parameters=None, rope_theta=1e6, rope_scaling=None)
    export(tmp_path / "old", tmp_path / "old-out")
    config = json.loads((tmp_path / "old-out/config.json").read_text())
    assert (config["rotary_base"], config["rotary_scaling"]) == (1e6, None)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"symmetric": False}, "no zero points"),
        ({"model_type": "mamba"}, "no TensorRT-LLM checkpoint layout is known for the model type `mamba`"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6}}, "no rotary scaling `yarn`"),
        ({"intermediate_size": 960}, "intermediate width 960"),
    ],
)
def test_what_cannot_be_exported_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    canonical.make(tmp_path / "source", **changes)
    with pytest.raises(ConfigError, match=what) as caught:
        export(tmp_path / "source", tmp_path / "out", 2)
    assert caught.value.where
    assert caught.value.fix
    assert list((tmp_path / "out").iterdir()) == []


def test_scales_that_float16_rounds_are_counted(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    canonical.make(tmp_path / "source")
    shard = tmp_path / "source/model-00001-of-00004.safetensors"
    tensors = load_file(shard)
    tensors["model.layers.0.mlp.up_proj.weight_scale"][0, 0] = 1.01e-7
    save_file(tensors, shard)
    assert not any("float16" in note for note in export(tmp_path / "source", tmp_path / "bfloat16"))
    notes = export(tmp_path / "source", tmp_path / "float16", dtype="float16")
    assert any(note.startswith("1 scale(s) are too small for float16") for note in notes)


def test_o_22_missing_kv_scales_are_counted_before_anything_is_written(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    index = tmp_path / "source/model.safetensors.index.json"
    index.write_text(index.read_text().replace("layers.1.self_attn.v_scale", "layers.1.self_attn.lost"))
    with pytest.raises(ConfigError, match="KV scales not applied: 1 layers have none that is positive, first layer 1"):
        export(tmp_path / "source", tmp_path / "out", 2)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(("kv_cache", "warned"), [("fp8", True), ("model", False)])
def test_o_21_biased_keys_with_an_fp8_kv_cache_are_warned_of(tmp_path: Path, kv_cache: str, warned: bool) -> None:
    canonical.make(tmp_path / "source", model_type="qwen2", biases=QKV)
    notes = export(tmp_path / "source", tmp_path / "out", kv_cache=kv_cache)
    assert any("biased q, k and v have been seen to fail" in note for note in notes) == warned


def test_a_vocabulary_that_is_not_the_embeddings_is_refused(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    config = tmp_path / "source/config.json"
    config.write_text(config.read_text().replace('"vocab_size": 96', '"vocab_size": 128'))
    with pytest.raises(ConfigError, match=r"is \[96, 512\], config.json says \[128, 512\]"):
        export(tmp_path / "source", tmp_path / "out")
