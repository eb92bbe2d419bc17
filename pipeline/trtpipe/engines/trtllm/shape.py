"""What the plan has to know of a dense decoder, read from a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trtpipe.core.sharing import Decoder
from trtpipe.errors import ConfigError, TrtpipeError, raise_all

NEEDED = (
    "model_type", "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size",
    "max_position_embeddings",
)  # fmt: skip
# Where they stand, they are numbers too; null counts as not there.
OPTIONAL = ("num_key_value_heads", "head_dim")
SCALINGS = ("rope_parameters", "rope_scaling")
SIZE_MAX = 1 << 31  # TensorRT's largest dimension
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
        ConfigError(f"`{key}` must be {wanted}, and is {value!r}", where=where, fix="correct config.json")
        for key, wanted, value in _wrong_values(config)
    ]
    if not problems and not config.get("head_dim") and config["num_attention_heads"] > config["hidden_size"]:
        heads, hidden = config["num_attention_heads"], config["hidden_size"]
        what = f"{heads} attention heads in a hidden size of {hidden}, and no head_dim"
        problems.append(ConfigError(what, where=where, fix="correct config.json"))
    if experts := next((config[key] for key in EXPERT_KEYS if config.get(key)), None):
        problems.append(
            ConfigError(
                f"a mixture of {experts} experts: only dense decoders are planned for TensorRT-LLM",
                where=where,
                fix="plan a dense model, or use the local engine",
            )
        )
    raise_all(problems)


def _wrong_values(config: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield key, what it must be, and what it is. Null is not wrong where a key may be missing."""
    sizes = {key: config[key] for key in NEEDED[1:] if key in config}
    sizes |= {key: config[key] for key in OPTIONAL if config.get(key) is not None}
    for key, value in sizes.items():
        if type(value) is not int or value < 1:
            yield key, "a whole number above 0", value
        elif value >= SIZE_MAX:
            yield key, f"below {SIZE_MAX}", value
    window = config.get("sliding_window")
    if window is not None and type(window) is not int:
        yield "sliding_window", "a whole number", window
    factors: list[tuple[str, Any]] = [("rope_theta", config.get("rope_theta"))]
    for key in SCALINGS:
        if isinstance(scaling := config.get(key), dict):
            factors += [(f"{key}.{name}", scaling.get(name)) for name in ("rope_theta", "factor")]
        elif scaling is not None:
            yield key, "an object", scaling
    for key, value in factors:
        if value is not None and not _is_factor(value):
            yield key, "a number above 0", value


def _is_factor(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < float("inf")


def _positions(config: dict[str, Any]) -> int:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    factor = 1.0 if kind in SCALED_BEFORE else float(scaling.get("factor", 1.0))
    return int(config["max_position_embeddings"] * factor)


def _window(config: dict[str, Any]) -> int | None:
    """Return the window where it is in use: Qwen2 states one and switches it off."""
    window = config.get("sliding_window")
    if (
        not window
        or window < 1
        or config.get("use_sliding_window") is False
        or window >= config["max_position_embeddings"]
    ):
        return None
    return int(window)
