"""GGUF tensors and metadata as a Hugging Face Llama checkpoint: names, row order, ``config.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MODEL_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def tensors(reader: gguf.GGUFReader) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield each weight under its Hugging Face name: float32, shape (out, in), or (n,) for a norm."""
    heads_of = {
        "attn_q": metadata(reader, "llama.attention.head_count"),
        "attn_k": metadata(reader, "llama.attention.head_count_kv"),
    }
    for tensor in reader.tensors:
        part = tensor.name.split(".")[-2]
        weight = gguf.dequantize(tensor.data, tensor.tensor_type)
        if part in heads_of:
            weight = halves_apart(weight, heads_of[part])
        yield hugging_face_name(tensor.name), weight


def hugging_face_name(name: str) -> str:
    """Translate a llama.cpp tensor name. Raises KeyError for one outside the Llama architecture."""
    if name in MODEL_NAMES:
        return MODEL_NAMES[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}"


def halves_apart(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo llama.cpp's row order of the query and key projections; ``weight`` is (heads * head_dim, in).

    RoPE rotates pairs of rows. llama.cpp keeps the two rows of a pair side by side: (0, 1), (2, 3), ...
    Hugging Face keeps them half a head apart: (0, d/2), (1, d/2 + 1), ...
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def config(reader: gguf.GGUFReader) -> dict[str, Any]:
    """Return the content of ``config.json``."""
    hidden_size = metadata(reader, "llama.embedding_length")
    heads = metadata(reader, "llama.attention.head_count")
    rope_theta = metadata(reader, "llama.rope.freq_base")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata(reader, "tokenizer.ggml.padding_token_id"),
        "head_dim": hidden_size // heads,
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "intermediate_size": metadata(reader, "llama.feed_forward_length"),
        "max_position_embeddings": metadata(reader, "llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": metadata(reader, "llama.block_count"),
        "num_key_value_heads": metadata(reader, "llama.attention.head_count_kv"),
        "rms_norm_eps": shortest(metadata(reader, "llama.attention.layer_norm_rms_epsilon")),
        # transformers 5 reads rope_parameters; the older ones that AutoAWQ and ModelOpt need read rope_theta.
        "rope_parameters": {"rope_theta": rope_theta, "rope_type": "default"},
        "rope_theta": rope_theta,
        "tie_word_embeddings": True,  # the file has no output.weight
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": metadata(reader, "llama.vocab_size"),
    }


def shortest(value: float) -> float:
    """Return the shortest decimal that rounds to the same float32: GGUF stores 1e-5 as 9.99999975e-06."""
    return float(str(np.float32(value)))


def metadata(reader: gguf.GGUFReader, key: str) -> Any:
    """Return a metadata value as a plain Python one. Raises KeyError where the file lacks it."""
    return reader.fields[key].contents()
