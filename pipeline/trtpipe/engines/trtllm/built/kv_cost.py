"""What a difference between an engine and what was asked for costs in KV blocks: the plan's arithmetic, done twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm import memory
from trtpipe.engines.trtllm.division import Division
from trtpipe.engines.trtllm.gpus import Gpu, gpu_of
from trtpipe.engines.trtllm.limits import Limits
from trtpipe.engines.trtllm.shape import DecoderShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.built.folder import EngineFolder
    from trtpipe.engines.trtllm.capacity import Pool

COUNTED = ("max_seq_len", "max_num_tokens", "max_batch_size", "tokens_per_block")
KV_DTYPES = {None: "model", "FP8": "fp8_e4m3", "INT8": "int8"}  # of `kv_cache_quant_algo`
NEEDED = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size",
    "max_position_embeddings",
)  # fmt: skip


@dataclass(frozen=True)
class KvCost:
    """``arguments``: what was asked for; of ``COUNTED`` all."""

    division: Division
    target: TensorrtLlmTarget
    gpu: Gpu
    arguments: Mapping[str, Any]

    @classmethod
    def of_engine(cls, engine: EngineFolder, target: TensorrtLlmTarget, arguments: Mapping[str, Any]) -> KvCost | None:
        """Take the shape from an engine's config.json; None where that does not say enough, as one made elsewhere."""
        build, held = engine.config["build_config"], engine.pretrained
        plugins = build.get("plugin_config") or {}
        asked = {name: arguments.get(name, build.get(name, plugins.get(name))) for name in COUNTED}
        shape = {"model_type": "", "head_dim": held.get("head_size"), **held}
        if not all(map(_is_count, [*asked.values(), *(shape.get(key) for key in NEEDED)])):
            return None
        mapping = held["mapping"]
        division = Division(
            DecoderShape.of(shape, str(engine.path)), target.weights, target.group_size, mapping["tp_size"],
            mapping.get("pp_size", 1), pad=False,
        )  # fmt: skip
        return cls(division, target, gpu_of(target.gpu, "gpu"), asked)

    def of(self, name: str, got: Any) -> str | None:
        """Say what an argument that became ``got`` does to the KV cache; None where it does nothing that is counted."""
        if name == "use_paged_context_fmha" and got is not True and got != "enable":
            return f"none of the {self._pool({}).blocks:,} KV blocks planned is ever reused"
        return self._change({name: got}) if name in COUNTED and _is_count(got) else None

    def of_kv_dtype(self, algo: str | None) -> str | None:
        """Say the same of the type of the KV cache, as `kv_cache_quant_algo` names it."""
        return self._change({"kv_dtype": KV_DTYPES[algo]}) if algo in KV_DTYPES else None

    def _change(self, changes: Mapping[str, Any]) -> str:
        return f"{self._held(changes)} instead of {self._held({})}, as planned"

    def _held(self, changes: Mapping[str, Any]) -> str:
        pool = self._pool(changes)
        sequences = pool.sequences({**self.arguments, **changes}["max_seq_len"])
        return (
            f"{pool.blocks:,} KV blocks of {pool.block_tokens} ({pool.tokens:,} tokens, {sequences:,} sequences of "
            "max_seq_len)"
        )

    def _pool(self, changes: Mapping[str, Any]) -> Pool:
        said = {**self.arguments, **changes}
        target = self.target.model_copy(update={"kv_block_tokens": said["tokens_per_block"]})
        limits = Limits(said["max_seq_len"], said["max_num_tokens"], said["max_batch_size"], "", "", "")
        held = memory.of(self.division, target, self.gpu, limits)
        return held.pools[said.get("kv_dtype", target.kv_dtype)]


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0
