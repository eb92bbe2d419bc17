"""Record what ModelOpt's TensorRT-LLM export writes for tiny random models.

    pip install torch==2.13.0 nvidia-modelopt==0.47.0 transformers==4.57.6 'accelerate>=1.2,<2'    # a venv of its own
    python benchmarks/modelopt_export.py > tests/quantization/exports/modelopt-0.47.0.json

Two minutes on two cores; needs no GPU and no TensorRT-LLM. `tests/quantization/exports/test_modelopt.py` compares the
record with our own export field by field.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.export import export_tensorrt_llm_checkpoint
from modelopt.torch.export.quant_utils import to_quantized_weight
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

SHAPE: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 256,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
GROUP_SIZE = 128  # ModelOpt's default
DECODERS = {"llama": "llama", "qwen2": "qwen"}
DIVISIONS = ((1, 1), (2, 1), (2, 2), (8, 1))  # TP, PP
DTYPES = {"torch.int8": "I8", "torch.bfloat16": "BF16", "torch.float16": "F16", "torch.float32": "F32"}


def model_of(model_type: str) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **SHAPE), dtype=torch.bfloat16).eval()


def quantized(model: Any) -> Any:
    recipe = copy.deepcopy(mtq.INT4_AWQ_CFG)
    recipe["quant_cfg"] = mtq.update_quant_cfg_with_kv_cache_quant(recipe, mtq.FP8_KV_CFG["quant_cfg"])["quant_cfg"]
    ids = torch.randint(0, SHAPE["vocab_size"], (1, 64))
    return mtq.quantize(model, recipe, lambda one: one(ids))


def exported(model_type: str, folder: Path, tensor_parallel: int, pipeline_parallel: int) -> Any:
    """Export into ``folder``; return the model as it was before quantization."""
    original = model_of(model_type)
    with torch.inference_mode():
        export_tensorrt_llm_checkpoint(
            quantized(copy.deepcopy(original)), DECODERS[model_type], torch.bfloat16, folder,
            inference_tensor_parallel=tensor_parallel, inference_pipeline_parallel=pipeline_parallel,
        )  # fmt: skip
    return original


def case(model_type: str, tensor_parallel: int, pipeline_parallel: int) -> dict[str, Any]:
    """Return config and tensor forms; ranks whose files have equal forms are listed together."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported(model_type, folder, tensor_parallel, pipeline_parallel)
        files: list[dict[str, Any]] = []
        for rank in range(tensor_parallel * pipeline_parallel):
            forms = forms_of(folder / f"rank{rank}.safetensors")
            same = next((group for group in files if group["tensors"] == forms), None)
            if same:
                same["ranks"].append(rank)
            else:
                files.append({"ranks": [rank], "tensors": forms})
        config = json.loads((folder / "config.json").read_text("utf-8"))
    return {
        "model_type": model_type, "tensor_parallel": tensor_parallel, "pipeline_parallel": pipeline_parallel,
        "config": config, "files": files,
    }  # fmt: skip


def forms_of(path: Path) -> dict[str, list[Any]]:
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    return {name: [DTYPES[str(tensor.dtype)], list(tensor.shape)] for name, tensor in tensors.items()}


def packing() -> dict[str, Any]:
    """Return ModelOpt's bytes of known codes: of weights that are codes x 0.5 with a scale of 0.5."""
    torch.manual_seed(0)
    codes = torch.randint(-8, 8, (8, GROUP_SIZE))
    packed = to_quantized_weight(codes * 0.5, torch.full((8, 1), 0.5), "int4_awq", block_size=GROUP_SIZE)
    return {"what": "to_quantized_weight of codes x 0.5", "codes": codes.tolist(),
            "packed": packed.view(torch.uint8).tolist()}  # fmt: skip


def relative_errors() -> dict[str, Any]:
    """Return how far the shares of Llama at TP 8 are from the parts of the model's weights that they may hold."""
    with tempfile.TemporaryDirectory() as name:
        layer = exported("llama", Path(name), 8, 1).model.layers[0]
        farthest: dict[str, dict[str, float]] = {}
        for rank in range(8):
            with safe_open(Path(name) / f"rank{rank}.safetensors", framework="pt") as file:
                for linear, parts in parts_of(layer, rank).items():
                    share = dequantized(file, f"transformer.layers.0.{linear}")
                    for part, weight in parts.items():
                        distance = float((share - weight.float()).norm() / weight.float().norm())
                        found = farthest.setdefault(linear, {})
                        found[part] = round(max(found.get(part, 0.0), distance), 3)
    what = (
        "largest relative L2 distance over the 8 ranks (Llama, TP 8, layer 0) between the dequantized share, times the "
        "pre-quant scale, and the model's weight"
    )
    return {"what": what, **farthest}


def dequantized(file: Any, name: str) -> torch.Tensor:
    packed = file.get_tensor(f"{name}.weight").view(torch.uint8)
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten(0, 1).to(torch.int16)
    codes = torch.where(codes > 7, codes - 16, codes).float()
    scales = file.get_tensor(f"{name}.weights_scaling_factor").repeat_interleave(GROUP_SIZE, dim=1)
    pre_quant = file.get_tensor(f"{name}.prequant_scaling_factor") if has(file, name) else torch.ones(codes.shape[1])
    weight: torch.Tensor = codes * scales * pre_quant.float()
    return weight


def has(file: Any, name: str) -> bool:
    return f"{name}.prequant_scaling_factor" in file.keys()  # noqa: SIM118 - no mapping


def parts_of(layer: Any, rank: int) -> dict[str, dict[str, torch.Tensor]]:
    attention, mlp = layer.self_attn, layer.mlp

    def rows(linear: Any) -> torch.Tensor:
        return linear.weight.chunk(8, dim=0)[rank]

    def columns(linear: Any) -> torch.Tensor:
        return linear.weight.chunk(8, dim=1)[rank]

    heads = torch.cat([rows(linear) for linear in (attention.q_proj, attention.k_proj, attention.v_proj)])
    gate_or_up = {"gate_proj rows": rows(mlp.gate_proj), "up_proj rows": rows(mlp.up_proj)}
    return {
        "attention.qkv": {"q,k,v of the rank's heads": heads},
        "attention.dense": {"o_proj columns": columns(attention.o_proj)},
        "mlp.fc": gate_or_up,
        "mlp.gate": gate_or_up,
        "mlp.proj": {"down_proj columns": columns(mlp.down_proj)},
    }


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr):  # ModelOpt prints its progress
        versions = {name: importlib.metadata.version(name) for name in
                    ("nvidia-modelopt", "transformers", "torch", "safetensors")}  # fmt: skip
        record = {
            "what": "what ModelOpt's export_tensorrt_llm_checkpoint writes for tiny random models",
            "made_by": "benchmarks/modelopt_export.py",
            "environment": {**versions, "python": platform.python_version()},
            "hugging_face": SHAPE,
            "group_size": GROUP_SIZE,
            "cases": [case(model_type, *division) for model_type in DECODERS for division in DIVISIONS],
            "packing": packing(),
            "relative_error": relative_errors(),
        }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
