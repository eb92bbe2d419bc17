"""The command that makes a TensorRT-LLM checkpoint of an AutoAWQ one: printed, for the host that has TensorRT-LLM.

From TensorRT-LLM `examples/models/core/{llama,qwen}/convert_checkpoint.py`: parse_arguments (options),
update_quant_config_from_hf (`quant_method` awq becomes `W4A16_GPTQ` with group size and zero points of config.json).
"""

from __future__ import annotations

from pathlib import Path

CONVERTERS = {"llama": "examples/models/core/llama", "qwen2": "examples/models/core/qwen"}


def conversion_command(
    model_type: str,
    folder: Path,
    output: Path,
    *,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: str = "float16",
) -> list[str]:
    """Return the command, for TensorRT-LLM's source tree, that makes a TensorRT-LLM checkpoint of an AutoAWQ one."""
    return [
        "python3", f"{CONVERTERS[model_type]}/convert_checkpoint.py",
        "--model_dir", str(folder), "--output_dir", str(output), "--dtype", dtype,
        "--tp_size", str(tensor_parallel), "--pp_size", str(pipeline_parallel),
    ]  # fmt: skip
