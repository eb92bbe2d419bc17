"""Ours against ModelOpt's export of a tiny Llama and Qwen2, field by field; every difference has its reason here.

`modelopt-0.47.0.json` was made in an environment of its own (see its `environment`): names, types, shapes and config
keys of each rank's file, ModelOpt's packing of known codes, and which weights its linears hold.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from trtpipe.quantization.exports.divide import divide
from trtpipe.quantization.exports.nibbles import pack_row_pairs
from trtpipe.quantization.exports.streamed import DTYPE_NAMES
from trtpipe.quantization.exports.tensor_parallel import Division, ModelShape
from trtpipe.quantization.exports.trtllm_config import trtllm_config
from trtpipe.quantization.exports.trtllm_layout import LINEARS, model_of
from trtpipe.quantization.exports.trtllm_tensors import Forms, specs

MODELOPT = json.loads((Path(__file__).parent / "modelopt-0.47.0.json").read_text("utf-8"))
ABSENT = "absent"

TENSORS = {
    "k_cache_scaling_factor": "the loader keeps the larger of both (modeling_utils.py preprocess_weights), as ours is",
    "v_cache_scaling_factor": "as above",
}
SHAPES = {
    "vocab_embedding.weight": "1000 rows are padded to a multiple of TP as the loader's models ask, not of 64",
    "lm_head.weight": "as above",
}
CONFIG = {
    "producer": "says who wrote it",
    "logits_dtype": "float32 is TensorRT-LLM's own default; float16 would cost the drift check its precision",
    "vocab_size": "ModelOpt states the padded size, so that added rows can be sampled; ours states the true one",
    "rank": "left by the last rank; TensorRT-LLM drops it itself",
    "share_embedding_table": "not read for these models; both tables are written",
    "residual_mlp": "false is the loader's default",
    "bias": "ModelOpt's own key, not read",
    "decoder": "ModelOpt's own key, not read",
    "rmsnorm": "ModelOpt's own key, not read",
    "lm_head_bias": "ModelOpt's own key, not read",
    "rotary_pct": "1.0 is the loader's default",
    "rotary_scaling": "stated even where there is none",
    "attn_bias": "stated; the loader's default is false for Llama, true for Qwen",
    "mlp_bias": "stated; false is the loader's default",
}
QWEN_CONFIG = {
    "architecture": "TensorRT-LLM's own script writes the Hugging Face name as well (quantize_by_modelopt.py)",
    "qwen_type": "set by the same script; without it the model is taken for the first Qwen",
    "seq_length": "models/qwen/model.py reads it without a default",
    "use_logn_attn": "stated; false is the loader's default",
}


def division(case: dict[str, Any]) -> Division:
    return divide(
        ModelShape.of(MODELOPT["hugging_face"]),
        MODELOPT["group_size"],
        tensor_parallel=case["tensor_parallel"],
        pipeline_parallel=case["pipeline_parallel"],
        pad_intermediate=False,
    )


cases = pytest.mark.parametrize(
    "case",
    MODELOPT["cases"],
    ids=lambda case: f"{case['model_type']}-tp{case['tensor_parallel']}-pp{case['pipeline_parallel']}",
)


@cases
def test_tensors_differ_only_where_explained(case: dict[str, Any]) -> None:
    biased = model_of(case["model_type"]).biases({})
    forms = Forms(division(case), torch.bfloat16, biased, fp8_kv_cache=True)
    missing, reshaped = set(), set()
    for group in case["files"]:
        for rank in group["ranks"]:
            planned = specs(forms, rank // case["tensor_parallel"])
            ours = {spec.name: [DTYPE_NAMES[spec.dtype], list(spec.shape)] for spec in planned}
            assert not ours.keys() - group["tensors"].keys()
            missing |= {name.rsplit(".", 1)[1] for name in group["tensors"].keys() - ours.keys()}
            for name, form in ours.items():
                theirs = group["tensors"][name]
                assert form[0] == theirs[0], name
                if form != theirs:
                    reshaped.add(".".join(name.split(".")[-2:]))
                    assert form[1] == [-(-1000 // case["tensor_parallel"]), 1024]
                    assert theirs[1] == [1024 // case["tensor_parallel"], 1024]
    assert missing == TENSORS.keys()
    assert reshaped == SHAPES.keys()


@cases
def test_config_differs_only_where_explained(case: dict[str, Any]) -> None:
    source = MODELOPT["hugging_face"] | {"model_type": case["model_type"]}
    ours, theirs = trtllm_config(source, division(case), dtype="bfloat16", fp8_kv_cache=True), case["config"]
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key, ABSENT) != theirs.get(key, ABSENT)}
    assert different == CONFIG.keys() | (QWEN_CONFIG.keys() if case["model_type"] == "qwen2" else set())


def test_codes_are_packed_as_modelopt_packs_them() -> None:
    sample = MODELOPT["packing"]
    packed = pack_row_pairs(torch.tensor(sample["codes"], dtype=torch.int8))
    assert packed.view(torch.uint8).tolist() == sample["packed"]


def test_linears_hold_the_weights_that_modelopts_hold() -> None:
    """ModelOpt's shares came within 13 % (its rounding) of these weights, and not of the other projection."""
    near = {
        linear: [part for part, distance in parts.items() if distance < 0.2]
        for linear, parts in MODELOPT["relative_error"].items()
        if linear != "what"
    }
    ours = {linear.name: f"{linear.sources[0].split('.')[1]} {linear.split}" for linear in LINEARS}
    assert near == {name: [part] for name, part in ours.items() if name != "attention.qkv"} | {
        "attention.qkv": ["q,k,v of the rank's heads"]
    }
