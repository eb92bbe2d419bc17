"""config.json of a TensorRT-LLM checkpoint.

Keys of TensorRT-LLM `tensorrt_llm/models/modeling_utils.py` (PretrainedConfig, QuantConfig: an unknown key in
`quantization` breaks the load), `models/{llama,qwen}/config.py` and `mapping.py`. How W4A16_AWQ fills them: ModelOpt
`modelopt/torch/export/tensorrt_llm_utils.py` (convert_to_tensorrt_llm_config).
"""

from __future__ import annotations

from typing import Any

from trtpipe import __version__
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.rotary import rotary_of
from trtpipe.quantization.exports.tensor_parallel import Division
from trtpipe.quantization.exports.trtllm_layout import model_of

# scalings that `tensorrt_llm/layers/attention.py` applies under rope_gpt_neox
SCALINGS = ("linear", "dynamic", "llama3")


def trtllm_config(config: dict[str, Any], division: Division, *, dtype: str, fp8_kv_cache: bool) -> dict[str, Any]:
    """Return config.json for a Hugging Face config. Raises ConfigError for a rotary scaling the engine lacks."""
    model, shape = model_of(config["model_type"]), division.shape
    base, scaling = rotary_of(config)
    if scaling is not None and scaling["rope_type"] not in SCALINGS:
        raise ConfigError(
            f"the engine has no rotary scaling `{scaling['rope_type']}` for this model",
            where="config.json rope_scaling",
            fix=f"known: {', '.join(SCALINGS)}; without scaling the context is max_position_embeddings",
        )
    return {
        "producer": {"name": "trtpipe", "version": __version__},
        "architecture": model.architecture,
        "dtype": dtype,
        "logits_dtype": "float32",
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_size": shape.head_width,
        "hidden_size": shape.hidden,
        "intermediate_size": division.intermediate,
        "hidden_act": config["hidden_act"],
        "norm_epsilon": config["rms_norm_eps"],
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": config["max_position_embeddings"],
        "position_embedding_type": "rope_gpt_neox",
        "rotary_base": base,
        "rotary_scaling": scaling,
        "attn_bias": model.has_attention_bias(config),
        "mlp_bias": bool(config.get("mlp_bias")),
        **model.extra,
        "use_parallel_embedding": True,
        "embedding_sharding_dim": 0,
        "mapping": {
            "world_size": division.tensor_parallel * division.pipeline_parallel,
            "tp_size": division.tensor_parallel,
            "pp_size": division.pipeline_parallel,
        },
        "quantization": {
            "quant_algo": "W4A16_AWQ",
            "kv_cache_quant_algo": "FP8" if fp8_kv_cache else None,
            "group_size": division.group_size,
            "has_zero_point": False,
            "pre_quant_scale": True,
            "exclude_modules": ["lm_head"],
        },
    }
