"""Which linears of a decoder layer share an input, and what absorbs the inverse of their scale: data only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from trtpipe.errors import ConfigError

EXPERT = "{expert}"
ROUTER = "mlp.gate"
EXPERTS = "mlp.experts"


@dataclass(frozen=True)
class ScaleGroup:
    """Linears with one common input, scaled together.

    ``absorber`` is the module before them that is divided by the scale: a norm that multiplies by its weight or by
    one plus its weight, or a linear whose output rows they consume. In a linear that computes several things at once
    (q, k, v; gate, up) those rows are its last ones. With ``per_query_group`` the scale is equal for all query heads
    of one KV head (GQA). ``scaled_too`` reads the same input but is not quantized. ``watched`` is the module whose
    input the statistics are of, the group's first linear unless it is named; with ``expert`` they are of the input of
    that expert's down projection.
    """

    name: str
    linears: tuple[str, ...]
    absorber: str
    absorber_kind: Literal["norm", "norm plus one", "linear"]
    per_query_group: bool = False
    scaled_too: tuple[str, ...] = ()
    watched: str = ""
    expert: int | None = None

    def __post_init__(self) -> None:
        if not self.watched:
            object.__setattr__(self, "watched", self.linears[0])

    def for_experts(self, count: int) -> list[ScaleGroup]:
        """Put expert numbers in: one group for each expert that absorbs, else one group of all experts' linears."""
        if EXPERT in self.absorber:
            return [
                replace(
                    self,
                    name=self.name.format(expert=expert),
                    linears=tuple(name.format(expert=expert) for name in self.linears),
                    absorber=self.absorber.format(expert=expert),
                    expert=expert,
                )
                for expert in range(count)
            ]
        linears = [
            name.format(expert=expert) for name in self.linears for expert in (range(count) if EXPERT in name else (0,))
        ]
        return [replace(self, linears=tuple(linears))]


@dataclass(frozen=True)
class Architecture:
    """How the decoder layers of some model types are built.

    ``sparse``: the groups of a layer with a mixture of experts. ``renames``: parts of names as transformers builds
    the modules, and as checkpoints have them. ``scaled_embedding``: embeddings are multiplied by √hidden_size.
    """

    model_types: tuple[str, ...]
    dense: tuple[ScaleGroup, ...]
    sparse: tuple[ScaleGroup, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    scaled_embedding: bool = False

    @property
    def unquantized(self) -> tuple[str, ...]:
        """Linears of a decoder layer that stay as they are."""
        return tuple(name for group in self.sparse for name in group.scaled_too)

    def stored(self, name: str) -> str:
        """Return the name that a tensor has in checkpoints."""
        for built, stored in self.renames:
            name = name.replace(built, stored)
        return name

    def groups_of(self, tensors: Collection[str]) -> tuple[ScaleGroup, ...]:
        """Return the groups of a layer from the names of its tensors, each expert's linears by themselves.

        Raises ConfigError where the layer has a linear that no group knows, or lacks one.
        """
        experts = sum(name.startswith(f"{EXPERTS}.") and name.endswith(".down_proj.weight") for name in tensors)
        table = self.sparse if experts else self.dense
        groups = tuple(made for group in table for made in group.for_experts(experts))
        modules = {name for group in groups for name in (*group.linears, *group.scaled_too, group.absorber)}
        missing = sorted(modules - {name.removesuffix(".weight") for name in tensors})
        unknown = sorted(name for name in tensors if "norm" not in name and name.rpartition(".")[0] not in modules)
        if missing or unknown:
            raise ConfigError(
                f"a decoder layer is not built as known for {' and '.join(self.model_types)}: "
                f"without {', '.join(missing) or 'nothing'}; in no scale group {', '.join(unknown) or 'nothing'}",
                where="decoder layer",
                fix="such a layer needs an entry of its own in quantization/architectures.py",
            )
        return groups


def _attention(*qkv: str, norm: Literal["norm", "norm plus one"] = "norm") -> tuple[ScaleGroup, ScaleGroup]:
    return (
        ScaleGroup("attention input", qkv, "input_layernorm", norm),
        ScaleGroup("attention output", ("self_attn.o_proj",), qkv[-1], "linear", per_query_group=True),
    )


def _experts(*shared: str, scaled_too: tuple[str, ...] = ()) -> tuple[ScaleGroup, ScaleGroup]:
    inputs = ("mlp.experts.{expert}.gate_proj", "mlp.experts.{expert}.up_proj", *shared)
    return (
        ScaleGroup(
            "mlp input", inputs, "post_attention_layernorm", "norm", scaled_too=(ROUTER, *scaled_too), watched=ROUTER
        ),
        ScaleGroup(
            "expert {expert} output",
            ("mlp.experts.{expert}.down_proj",),
            "mlp.experts.{expert}.up_proj",
            "linear",
            watched=EXPERTS,
        ),
    )


_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
_GATE_UP = ("mlp.gate_proj", "mlp.up_proj")
_MLP_OUTPUT = ScaleGroup("mlp output", ("mlp.down_proj",), "mlp.up_proj", "linear")
_LLAMA = (*_attention(*_QKV), ScaleGroup("mlp input", _GATE_UP, "post_attention_layernorm", "norm"), _MLP_OUTPUT)
_SHARED = "mlp.shared_expert"

ARCHITECTURES = (
    Architecture(("llama", "mistral", "qwen2", "qwen3"), _LLAMA),
    Architecture(
        ("phi3",),
        (
            *_attention("self_attn.qkv_proj"),
            ScaleGroup("mlp input", ("mlp.gate_up_proj",), "post_attention_layernorm", "norm"),
            ScaleGroup("mlp output", ("mlp.down_proj",), "mlp.gate_up_proj", "linear"),
        ),
    ),
    Architecture(
        ("gemma2",),
        (
            *_attention(*_QKV, norm="norm plus one"),
            ScaleGroup("mlp input", _GATE_UP, "pre_feedforward_layernorm", "norm plus one"),
            _MLP_OUTPUT,
        ),
        scaled_embedding=True,
    ),
    Architecture(
        ("mixtral",),
        (),
        sparse=(*_attention(*_QKV), *_experts()),
        renames=(
            ("mlp.", "block_sparse_moe."),
            (".gate_proj.", ".w1."),
            (".up_proj.", ".w3."),
            (".down_proj.", ".w2."),
        ),
    ),
    Architecture(("qwen3_moe",), _LLAMA, sparse=(*_attention(*_QKV), *_experts())),
    Architecture(
        ("qwen2_moe",),
        _LLAMA,
        sparse=(
            *_attention(*_QKV),
            *_experts(f"{_SHARED}.gate_proj", f"{_SHARED}.up_proj", scaled_too=("mlp.shared_expert_gate",)),
            ScaleGroup("shared expert output", (f"{_SHARED}.down_proj",), f"{_SHARED}.up_proj", "linear"),
        ),
    ),
)


def architecture_of(model_type: str, where: str = "config.json") -> Architecture:
    """Return the table for a model type. Raises ConfigError listing the known ones; ``where`` it stands."""
    for architecture in ARCHITECTURES:
        if model_type in architecture.model_types:
            return architecture
    known = sorted(name for architecture in ARCHITECTURES for name in architecture.model_types)
    raise ConfigError(
        f"no scale groups are known for the model type `{model_type}`",
        where=where,
        fix=f"known: {', '.join(known)}; a new one needs an entry in quantization/architectures.py",
    )
