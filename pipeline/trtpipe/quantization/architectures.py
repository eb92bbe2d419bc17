"""Which linears of a decoder layer share an input, and what absorbs the inverse of their scale: data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtpipe.errors import ConfigError


@dataclass(frozen=True)
class ScaleGroup:
    """Linears with one common input, scaled together.

    ``absorber`` is the module before them that is divided by the scale: a norm, or a linear whose output rows
    they consume. With ``per_query_group`` the scale is equal for all query heads of one KV head (GQA).
    """

    name: str
    linears: tuple[str, ...]
    absorber: str
    absorber_kind: Literal["norm", "linear"]
    per_query_group: bool = False


@dataclass(frozen=True)
class Architecture:
    """How the decoder layers of some model types are built."""

    model_types: tuple[str, ...]
    groups: tuple[ScaleGroup, ...]

    @property
    def linears(self) -> tuple[str, ...]:
        return tuple(name for group in self.groups for name in group.linears)


_LLAMA_GROUPS = (
    ScaleGroup(
        "attention input",
        ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "input_layernorm",
        "norm",
    ),
    ScaleGroup("attention output", ("self_attn.o_proj",), "self_attn.v_proj", "linear", per_query_group=True),
    ScaleGroup("mlp input", ("mlp.gate_proj", "mlp.up_proj"), "post_attention_layernorm", "norm"),
    ScaleGroup("mlp output", ("mlp.down_proj",), "mlp.up_proj", "linear"),
)

ARCHITECTURES = (Architecture(("llama", "mistral", "qwen2", "qwen3"), _LLAMA_GROUPS),)


def architecture_of(model_type: str) -> Architecture:
    """Return the table for a model type. Raises ConfigError listing the known ones."""
    for architecture in ARCHITECTURES:
        if model_type in architecture.model_types:
            return architecture
    known = sorted(name for architecture in ARCHITECTURES for name in architecture.model_types)
    raise ConfigError(
        f"no scale groups are known for the model type `{model_type}`",
        where="config.json model_type",
        fix=f"known: {', '.join(known)}; a new one needs an entry in quantization/architectures.py",
    )
