"""What the plan has to know of a dense decoder, read from a Hugging Face config.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trtpipe.core.sharing import Decoder
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

NEEDED = (
    "model_type", "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size",
    "max_position_embeddings",
)  # fmt: skip
EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")
# model types whose linears of q, k and v have a bias, whatever config.json says (their classes in transformers)
BIASED_QKV = ("qwen2",)
NORMED_QK = ("qwen3",)
# scalings whose factor is in max_position_embeddings already: trtllm-build's rule for max_seq_len
# (tensorrt_llm/builder.py)
SCALED_BEFORE = ("default", "su", "longrope", "llama3")


@dataclass(frozen=True)
class DecoderShape(Decoder):
    """``positions``: the context with its rotary scaling.

    ``window``: tokens that attention looks back, None where it sees all. ``biased_qkv``, ``normed_qk``: what decides
    how well an 8-bit KV cache goes.
    """

    model_type: str
    positions: int
    window: int | None
    biased_qkv: bool
    normed_qk: bool

    @classmethod
    def of(cls, config: dict[str, Any], where: str) -> DecoderShape:
        """Read config.json; ``where`` is for messages. Raises ConfigError with all problems at once."""
        _require_dense(config, where)
        return cls.from_config(
            config,
            model_type=str(config["model_type"]),
            positions=_positions(config),
            window=_window(config),
            biased_qkv=config["model_type"] in BIASED_QKV or bool(config.get("attention_bias")),
            normed_qk=config["model_type"] in NORMED_QK,
        )


def _require_dense(config: dict[str, Any], where: str) -> None:
    problems: list[TrtpipeError] = [
        ConfigError(f"`{key}` is missing", where=where, fix="give the config.json of a decoder-only language model")
        for key in NEEDED
        if key not in config
    ]
    problems += [
        ConfigError(
            f"`{key}` must be a whole number above 0, and is {config[key]!r}", where=where, fix="correct config.json"
        )
        for key in NEEDED[1:]
        if key in config and not (type(config[key]) is int and config[key] > 0)
    ]
    if experts := next((config[key] for key in EXPERT_KEYS if config.get(key)), None):
        problems.append(
            ConfigError(
                f"a mixture of {experts} experts: only dense decoders are planned for TensorRT-LLM",
                where=where,
                fix="plan a dense model, or use the local engine",
            )
        )
    raise_all(problems)


def _positions(config: dict[str, Any]) -> int:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    factor = 1.0 if kind in SCALED_BEFORE else float(scaling.get("factor", 1.0))
    return int(config["max_position_embeddings"] * factor)


def _window(config: dict[str, Any]) -> int | None:
    """Return the window where it is in use: Qwen2 states one and switches it off."""
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False or window >= config["max_position_embeddings"]:
        return None
    return int(window)
