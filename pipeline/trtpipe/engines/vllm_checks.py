"""What a freshly loaded local engine must be like. Each check returns what is wrong, if anything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPEATED_SHARE_MAX = 0.8
KV_SCALE_TOLERANCE = 1e-6


def setting_faults(arguments: Mapping[str, Any], resolved: Mapping[str, Any]) -> list[str]:
    """Compare what was asked for with what the engine made of it."""
    wanted = {
        "kv_dtype": arguments["kv_cache_dtype"],
        "kv_block_tokens": arguments["block_size"],
        "max_model_len": arguments["max_model_len"],
        "max_num_seqs": arguments["max_num_seqs"],
        "prefix_caching": arguments["enable_prefix_caching"],
        "weights_dtype": arguments["dtype"],
    }
    faults = [f"{name} is {resolved[name]}, not {value}" for name, value in wanted.items() if resolved[name] != value]
    if resolved["kv_tokens"] < arguments["max_model_len"]:
        faults.append(f"the KV pool holds {resolved['kv_tokens']} tokens, not {arguments['max_model_len']}")
    if resolved["int4_layers"] == 0:
        faults.append("no layer has 4-bit weights")
    if resolved["w4a8_layers"]:
        faults.append(f"{resolved['w4a8_layers']} layers quantize activations to 8 bits (W4A8, not W4A16)")
    return faults


def kv_scale_faults(loaded: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """Compare the KV scales in the engine with the checkpoint's, both by tensor name.

    vLLM puts 1.0 where it finds no scale, without a message.
    """
    lacking = sorted({_layer(name) for name in loaded if name not in stored})
    differing = sorted(
        {
            _layer(name)
            for name, scale in loaded.items()
            if name in stored and abs(scale - stored[name]) > KV_SCALE_TOLERANCE * stored[name]
        }
    )
    unknown = sorted({_layer(name) for name in stored if name not in loaded})
    faults = []
    if lacking:
        faults.append(f"KV scales not applied: {len(lacking)} layers have none stored, first {lacking[0]}")
    if differing:
        faults.append(f"KV scales not applied: {len(differing)} layers have other values, first {differing[0]}")
    if unknown:
        faults.append(f"KV scales not applied: {len(unknown)} layers unknown to the engine, first {unknown[0]}")
    return faults


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def answer_faults(answer_ids: Sequence[int], text: str) -> list[str]:
    """Find an answer that is empty or one token over and over: the sign of weights read wrongly."""
    if not text.strip():
        return ["the answer is empty"]
    token, count = Counter(answer_ids).most_common(1)[0]
    if len(answer_ids) >= 4 and count > REPEATED_SHARE_MAX * len(answer_ids):
        return [f"the answer is token {token} over and over ({count} of {len(answer_ids)})"]
    if "\ufffd" in text.rstrip("\ufffd"):
        return ["the answer is not valid text"]  # at its end, a character may be cut by the token limit
    return []
