from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from exports import canonical, readers
from transformers import AutoConfig

from trtpipe.core.progress import Silent
from trtpipe.quantization.exports import autoawq
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.grid import quantize


def test_an_asymmetric_checkpoint_keeps_codes_zero_points_and_scales(tmp_path: Path) -> None:
    memory = canonical.make(tmp_path / "source", symmetric=False, model_type="qwen2", biases=("self_attn.q_proj",))
    notes = export(tmp_path)
    found, tensors = readers.autoawq(tmp_path / "out"), readers.folder(tmp_path / "out")
    assert found.keys() == memory.linears.keys()
    for name, quantized in memory.linears.items():
        assert quantized.zeros is not None
        zeros = quantized.zeros.repeat_interleave(quantized.group_size, dim=1)
        assert np.array_equal(found[name][0], (quantized.codes - zeros).numpy()), name
        assert np.array_equal(found[name][1], quantized.scales.float().numpy()), name
        rows, columns = quantized.codes.shape
        assert tensors[f"{name}.qweight"].shape == (columns, rows // 8)
        assert tensors[f"{name}.qzeros"].shape == (columns // 64, rows // 8)
    bias = memory.others["model.layers.1.self_attn.q_proj.bias"].half().numpy()
    assert np.array_equal(tensors["model.layers.1.self_attn.q_proj.bias"], bias)
    assert not any("weight_" in name or name.endswith(("k_scale", "v_scale")) for name in tensors)
    assert notes == [
        "norms, embedding and head are float16, the type of this layout",
        "the FP8 KV scales of the checkpoint are left out: this layout has none",
    ]


def export(tmp_path: Path) -> list[str]:
    (tmp_path / "out").mkdir()
    planned = autoawq.plan(Checkpoint(tmp_path / "source"))
    planned.write(tmp_path / "out", Silent())
    return planned.notes


def test_symmetric_codes_get_zero_point_eight() -> None:
    quantized = quantize(torch.randn(16, 128), 64)
    tensors = autoawq.linear_tensors(quantized)
    assert (tensors["qzeros"].numpy().view(np.uint32) == 0x88888888).all()


def test_a_word_holds_eight_columns_in_the_layouts_order() -> None:
    """The nibbles of one word, lowest first, are columns 0 2 4 6 1 3 5 7 of the transposed weight."""
    quantized = quantize(torch.arange(8.0).unsqueeze(1).expand(8, 64).contiguous(), 64, symmetric=False)
    codes = quantized.codes[:, 0].tolist()
    word = int(autoawq.linear_tensors(quantized)["qweight"].numpy().view(np.uint32)[0, 0])
    assert [(word >> (4 * nibble)) & 15 for nibble in range(8)] == [
        codes[column] for column in (0, 2, 4, 6, 1, 3, 5, 7)
    ]


def test_config_is_what_converter_and_transformers_look_for(tmp_path: Path) -> None:
    canonical.make(tmp_path / "source")
    assert "the codes are symmetric, and this layout has zero points: each is 8" in export(tmp_path)
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["quantization_config"] == {
        "quant_method": "awq", "version": "gemm", "bits": 4, "group_size": 64, "zero_point": True,
        "modules_to_not_convert": None,
    }  # fmt: skip
    assert (config["torch_dtype"], config["rope_theta"], config["rope_scaling"]) == ("float16", 500000.0, None)
    read = AutoConfig.from_pretrained(tmp_path / "out")
    assert read.rope_parameters["rope_theta"] == 500000.0
    assert (tmp_path / "out/tokenizer.json").is_file()
