"""TensorRT-LLM's checkpoint layout as tables: models, linears, and what each rank's file holds.

From TensorRT-LLM `tensorrt_llm/models/{llama,qwen}/{config,model}.py` (keys, biases), `docs/source/legacy/architecture/
model-weights-loader.md` (names: `mlp.fc` is the gate projection, `mlp.gate` the up projection), and what ModelOpt's
`export_tensorrt_llm_checkpoint` writes (tests/quantization/exports/modelopt-0.47.0.json).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trtpipe.core.sharing import Width
from trtpipe.errors import ConfigError


@dataclass(frozen=True)
class FusedLinear:
    """A linear of the engine. ``sources``: the checkpoint's linears whose rows it holds; ``split``: what ranks share.

    Row-parallel linears of the field are split by ``columns`` here, column-parallel ones by ``rows``: of [out, in].
    """

    name: str
    sources: tuple[str, ...]
    split: Literal["rows", "columns"]
    out_width: Width
    in_width: Width


LINEARS = (
    FusedLinear("attention.qkv", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "rows", "qkv", "hidden"),
    FusedLinear("attention.dense", ("self_attn.o_proj",), "columns", "hidden", "attention"),
    FusedLinear("mlp.fc", ("mlp.gate_proj",), "rows", "intermediate", "hidden"),
    FusedLinear("mlp.gate", ("mlp.up_proj",), "rows", "intermediate", "hidden"),
    FusedLinear("mlp.proj", ("mlp.down_proj",), "columns", "hidden", "intermediate"),
)
NORMS = {"input_layernorm": "input_layernorm", "post_layernorm": "post_attention_layernorm"}
ATTENTION_BIASES, MLP_BIASES = ("attention.qkv", "attention.dense"), ("mlp.fc", "mlp.gate", "mlp.proj")


@dataclass(frozen=True)
class TrtllmModel:
    """One model type. ``attention_biases``: the linears with a bias if ``attention_bias`` (None: config.json says)."""

    model_type: str
    architecture: str
    attention_biases: tuple[str, ...]
    attention_bias: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def has_attention_bias(self, config: dict[str, Any]) -> bool:
        return bool(config.get("attention_bias")) if self.attention_bias is None else self.attention_bias

    def biases(self, config: dict[str, Any]) -> tuple[str, ...]:
        """Return the linears that have a bias."""
        attention = self.attention_biases if self.has_attention_bias(config) else ()
        return attention + (MLP_BIASES if config.get("mlp_bias") else ())


MODELS = (
    TrtllmModel("llama", "LlamaForCausalLM", ATTENTION_BIASES),
    # models/qwen/model.py reads config.seq_length without a default, models/qwen/config.py sets 8192; only logn uses it
    TrtllmModel(
        "qwen2",
        "Qwen2ForCausalLM",
        ("attention.qkv",),
        attention_bias=True,
        extra={"qwen_type": "qwen2", "seq_length": 8192, "use_logn_attn": False},
    ),
)


def model_of(model_type: str) -> TrtllmModel:
    """Return the table for a model type. Raises ConfigError listing the known ones."""
    for model in MODELS:
        if model.model_type == model_type:
            return model
    raise ConfigError(
        f"no TensorRT-LLM checkpoint layout is known for the model type `{model_type}`",
        where="config.json model_type",
        fix=f"known: {', '.join(model.model_type for model in MODELS)}; "
        "a new one needs an entry in quantization/exports/trtllm_layout.py",
    )
