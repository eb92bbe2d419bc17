from __future__ import annotations

import pytest

from trtpipe.errors import ConfigError
from trtpipe.quantization.architectures import architecture_of

LLAMA = [
    *(f"self_attn.{name}_proj.weight" for name in "qkvo"),
    *(f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
]
MIXTURE = [
    *(name for name in LLAMA if not name.startswith("mlp.")),
    *(f"mlp.experts.{expert}.{name}_proj.weight" for expert in range(3) for name in ("gate", "up", "down")),
    "mlp.gate.weight",
]


def test_experts_share_an_input_and_have_outputs_of_their_own() -> None:
    groups = {group.name: group for group in architecture_of("qwen3_moe").groups_of(MIXTURE)}
    assert len(groups["mlp input"].linears) == 6
    assert groups["mlp input"].scaled_too == ("mlp.gate",)
    assert groups["expert 2 output"].linears == ("mlp.experts.2.down_proj",)
    assert groups["expert 2 output"].absorber == "mlp.experts.2.up_proj"
    assert groups["expert 2 output"].expert == 2
    assert len(groups) == 6


def test_a_layer_without_experts_is_a_dense_one() -> None:
    names = [group.name for group in architecture_of("qwen3_moe").groups_of(LLAMA)]
    assert names == ["attention input", "attention output", "mlp input", "mlp output"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([*LLAMA, "self_attn.gate_proj.weight"], r"in no scale group self_attn\.gate_proj\.weight"),
        (LLAMA[1:], r"without self_attn\.q_proj;"),
    ],
)
def test_a_layer_built_otherwise_is_refused_with_what_is_missing(names: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        architecture_of("llama").groups_of(names)


def test_names_in_checkpoints() -> None:
    stored = architecture_of("mixtral").stored
    assert (
        stored("model.layers.0.mlp.experts.3.up_proj.weight") == "model.layers.0.block_sparse_moe.experts.3.w3.weight"
    )
    assert stored("model.layers.0.self_attn.v_proj.weight") == "model.layers.0.self_attn.v_proj.weight"
