"""Ours against ModelOpt's export of a tiny Llama and Qwen2, field by field; every difference has its reason here.

`modelopt-0.47.0.json` was made by `benchmarks/modelopt_export.py` in an environment of its own: names, types, shapes
and config keys of each rank's file, ModelOpt's packing of known codes, and which weights its linears hold.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from exports import canonical

from trtpipe.core.progress import Silent
from trtpipe.quantization.exports import trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.nibbles import pack_row_pairs
from trtpipe.quantization.exports.trtllm_layout import LINEARS

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


QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for model_type in ("llama", "qwen2"):
        folders[model_type] = tmp_path_factory.mktemp("canonical") / model_type
        biases = QKV if model_type == "qwen2" else ()
        changes = MODELOPT["hugging_face"] | {"rope_parameters": None, "model_type": model_type}
        canonical.make(folders[model_type], biases=biases, group_size=MODELOPT["group_size"], **changes)
    return folders


def export(source: Path, folder: Path, case: dict[str, Any]) -> Path:
    planned = trtllm.plan(
        Checkpoint(source),
        tensor_parallel=case["tensor_parallel"],
        pipeline_parallel=case["pipeline_parallel"],
        dtype="bfloat16",
        kv_cache="fp8",
        pad_intermediate=False,
    )
    folder.mkdir()
    planned.write(folder, Silent())
    return folder


def header(path: Path) -> dict[str, list[Any]]:
    with path.open("rb") as file:
        found = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: [entry["dtype"], entry["shape"]] for name, entry in found.items() if name != "__metadata__"}


cases = pytest.mark.parametrize(
    "case",
    MODELOPT["cases"],
    ids=lambda case: f"{case['model_type']}-tp{case['tensor_parallel']}-pp{case['pipeline_parallel']}",
)


@cases
def test_what_we_write_differs_only_where_explained(
    case: dict[str, Any], checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = export(checkpoints[case["model_type"]], tmp_path / "out", case)
    missing, reshaped = set(), set()
    for group in case["files"]:
        for rank in group["ranks"]:
            ours = header(folder / f"rank{rank}.safetensors")
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
    ours, theirs = json.loads((folder / "config.json").read_text("utf-8")), case["config"]
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key, ABSENT) != theirs.get(key, ABSENT)}
    assert different == CONFIG.keys() | (QWEN_CONFIG.keys() if case["model_type"] == "qwen2" else set())


def test_every_division_is_there_for_both_models() -> None:
    seen = {(case["model_type"], case["tensor_parallel"], case["pipeline_parallel"]) for case in MODELOPT["cases"]}
    assert seen == {(name, *ranks) for name in ("llama", "qwen2") for ranks in ((1, 1), (2, 1), (8, 1), (2, 2))}


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
