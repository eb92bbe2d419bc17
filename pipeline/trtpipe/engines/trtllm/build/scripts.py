"""The scripts of TensorRT-LLM's source tree that make its checkpoints: printed, for the host that has TensorRT-LLM.

`convert_checkpoint.py` reads `quantization_config` of the model's config.json (update_quant_config_from_hf), whatever
its options say: AutoAWQ becomes `W4A16_GPTQ` with its `group_size` (128 where it has none) and its `zero_point` (false
where it has none); GPTQ too, with `has_zero_point` as its `sym` says. So the zero points of asymmetric GPTQ are dropped
without a word, and `postprocess_weight_only_groupwise` (tensorrt_llm/quantization/functional.py) takes one off each
zero point of GPTQ, which is right for its first file format only.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm.build.grammar import Program, argument

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.build.grammar import Value

FILE = Path(__file__).with_name("scripts.toml")
CONVERTERS = {"llama": "llama", "qwen2": "qwen"}  # model type -> table
# --qformat and --kv_cache_dtype of quantize.py
QFORMATS = {"w4a16_awq": "int4_awq", "w4a8_awq": "w4a8_awq", "fp8": "fp8", "model": "full_prec"}
KV_FORMATS = {"fp8_e4m3": "fp8", "int8": "int8"}


@cache
def scripts() -> dict[str, Program]:
    """Return the scripts by table: llama, qwen, quantize."""
    tables: dict[str, Any] = tomllib.loads(FILE.read_text("utf-8"))
    return {
        name: Program(
            table["script"],
            ("python3", table["script"]),
            {row["name"]: argument(row) for row in table["arguments"]},
            FILE,
        )
        for name, table in tables.items()
    }


def has_fp8_kv_cache(model_type: str) -> bool:
    return "fp8_kv_cache" in scripts()[CONVERTERS[model_type]].arguments


def convert(
    model_type: str, folder: Path, output: Path, *, tensor_parallel: int, pipeline_parallel: int, dtype: str,
    vocabulary: int, fp8_kv_cache: bool = False,
) -> list[str]:  # fmt: skip
    """Return the line that makes `W4A16_GPTQ` of an AutoAWQ or GPTQ folder.

    The embedding is shared out as the plan counts it, but where ``vocabulary`` does not divide by the ranks: the
    script's loader cuts it without padding (weight_loader of tensorrt_llm/layers/embedding.py).
    """
    values: dict[str, Value] = {
        "model_dir": str(folder), "output_dir": str(output), "dtype": dtype,
        "tp_size": tensor_parallel, "pp_size": pipeline_parallel,
    }  # fmt: skip
    if tensor_parallel > 1 and vocabulary % tensor_parallel == 0:
        values["use_parallel_embedding"] = True
    if fp8_kv_cache:
        values["fp8_kv_cache"] = True
    return scripts()[CONVERTERS[model_type]].command(values)


def calibrates(target: TensorrtLlmTarget) -> bool:
    """True where quantize.py runs the model on texts: for a format with scales of activations, or of the KV cache."""
    return target.weights != "model" or target.kv_dtype in KV_FORMATS


def quantize(target: TensorrtLlmTarget, model: Path, output: Path, texts: Path) -> list[str]:
    """Return the line that quantizes an unquantized model with ModelOpt.

    ``texts``: a folder with train.jsonl, whose column `text` is calibrated on; by itself the script takes news articles
    from the network (get_calib_dataloader of tensorrt_llm/quantization/quantize_by_modelopt.py).
    """
    values: dict[str, Value] = {
        "model_dir": str(model), "output_dir": str(output), "qformat": QFORMATS[target.weights], "dtype": target.dtype,
        "tp_size": target.tensor_parallel, "pp_size": target.pipeline_parallel,
    }  # fmt: skip
    if "awq" in target.weights:
        values["awq_block_size"] = target.group_size
    if calibrates(target):
        values["calib_dataset"] = str(texts)
    if target.kv_dtype in KV_FORMATS:
        values["kv_cache_dtype"] = KV_FORMATS[target.kv_dtype]
    return scripts()["quantize"].command(values)
