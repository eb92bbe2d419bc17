"""Asked for against got: the arguments of a build and what the engine's config.json says became of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm.build.grammar import Argument, Value, grammar
from trtpipe.engines.trtllm.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Collection

    from trtpipe.engines.trtllm.built.kv_cost import KvCost

BUILDER = "tensorrt_llm/builder.py"
LACKS_MEMORY = "activation memory and KV tokens differ from the plan's"
# What a user loses where the engine has another value than was asked for.
COSTS = {
    "max_batch_size": "fewer or more requests run at once than planned; buffers differ",
    "max_seq_len": "longer requests are refused, or more memory is taken, than planned",
    "max_num_tokens": f"a step holds another number of tokens: {LACKS_MEMORY}",
    "max_beam_width": "requests with more beams are refused",
    "kv_cache_type": "without a paged KV cache there is no in-flight batching",
    "tokens_per_block": "KV reuse works in blocks of another size; the plan's block counts do not hold",
    "remove_input_padding": "without packed input there is no in-flight batching",
    "context_fmha": "prefill without a fused kernel: slower, and memory that grows with the square of the prompt",
    "use_paged_context_fmha": "no KV reuse and no chunked context: a prompt is prefilled whole, in one step",
    "use_fp8_context_fmha": "prefill attention in 16 bit instead of FP8, or the other way round",
    "gpt_attention_plugin": "without the attention plugin there is no in-flight batching and no paged KV cache",
    "multiple_profiles": "kernels are chosen for one size of step: NVIDIA measured 16 % fewer tokens a second without",
    "gemm_plugin": "the head's product runs through another library; NVIDIA measured 8 % fewer tokens a second without",
    "reduce_fusion": "all-reduce and normalization in two kernels instead of one",
    "logits_dtype": "the tensor contract of the server has another type of logits",
    "speculative_decoding_mode": "no tokens are guessed ahead, or by another method",
    "max_draft_len": "another number of tokens is guessed ahead",
    "gather_context_logits": "no KV reuse at run time",
}  # fmt: skip
OTHER_COST = "not known to this program: compare answers and speed before it serves"
# tensorrt_llm/models/modeling_utils.py SpeculativeDecodingMode: an IntFlag, written as its number
SPECULATIVE = {
    "draft_tokens_external": 2,
    "medusa": 4,
    "lookahead_decoding": 8,
    "explicit_draft_tokens": 16,
    "eagle": 32,
}
MISSING = object()


@dataclass(frozen=True)
class Difference:
    """One argument that became something else."""

    argument: Argument
    asked: Any
    got: Any

    def finding(self, where: str, kv: KvCost | None, *, accepted: bool) -> Finding:
        """``kv``: counts what it does to the KV cache; None where the engine's shape is not known."""
        name = self.argument.name
        costs = [COSTS.get(name, OTHER_COST), kv.of(name, self.got) if kv else None]
        found = "is not recorded" if self.got is MISSING else f"is {_said(self.got)}"
        return Finding(
            "changed" if accepted else "refused",
            f"{name} {found} in the engine, and {_said(self.asked)} was asked for{' (accepted)' if accepted else ''}",
            f"{where} {self.argument.recorded}",
            why="trtllm-build changes what it does not support, with no more than a line in its log",
            cost="; ".join(cost for cost in costs if cost),
            fix=None if accepted else f"ask for {_said(self.got)} in the target, or accepted_changes: [{name}]",
            source=BUILDER,
        )


def differences(asked: Mapping[str, Value], config: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare with an engine's config.json, in upstream's order; paths and what is not recorded are left out."""
    dtype = config.get("pretrained_config", {}).get("dtype")
    for name, argument in grammar().items():
        if argument.recorded is None or argument.kind == "path" or name not in asked:
            continue
        wanted, got = _as_recorded(argument, asked[name], dtype), _at(config, argument.recorded)
        if argument.name == "kv_cache_type" and isinstance(
            got, str
        ):  # `PAGED` of older builders, `paged` of newer ones
            got = got.lower()
        if (dtype if got == "auto" else got) != wanted:
            yield Difference(argument, wanted, got)


def between(asked: Mapping[str, Value], got: Mapping[str, Value]) -> Iterator[Difference]:
    """Compare arguments with what rewrites.py foresees of them."""
    for name, value in asked.items():
        if got[name] != value:
            yield Difference(grammar()[name], value, got[name])


def findings(
    found: Iterator[Difference], accepted: Collection[str], where: str, kv: KvCost | None
) -> list[Finding]:  # fmt: skip
    return [one.finding(where, kv, accepted=one.argument.name in accepted) for one in found]


def unknown_names(accepted: Collection[str]) -> list[str]:
    """Return the accepted names that no argument has whose effect the engine records."""
    return sorted(name for name in accepted if name not in grammar() or grammar()[name].recorded is None)


def _as_recorded(argument: Argument, value: Value, dtype: str | None) -> Any:
    if argument.kind == "switch":
        return value == "enable"
    if argument.kind == "plugin":
        return {"disable": None, "auto": dtype}.get(str(value), value)
    if argument.name == "speculative_decoding_mode":
        return SPECULATIVE[str(value)]
    return value


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for part in path.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return MISSING
        node = node[part]
    return node


def _said(value: Any) -> str:
    return {None: "disable", True: "enable", False: "disable"}.get(value, str(value)) if _plain(value) else str(value)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool)
