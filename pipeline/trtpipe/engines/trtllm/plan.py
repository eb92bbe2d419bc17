"""The plan of an engine: everything that can be said of a model and a target before weights are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm import capability, format_checks, limits, memory, memory_checks, sharing_checks
from trtpipe.engines.trtllm.capability import KV_DTYPES, QUANT_ALGO
from trtpipe.engines.trtllm.division import Division, legal_sizes
from trtpipe.engines.trtllm.families import family_of, is_exported
from trtpipe.engines.trtllm.gpus import Gpu, gpu_of
from trtpipe.engines.trtllm.shape import DecoderShape

if TYPE_CHECKING:
    from trtpipe.config.target import TensorrtLlmKvDtype, TensorrtLlmTarget
    from trtpipe.engines.trtllm.capability import Capability
    from trtpipe.engines.trtllm.findings import Finding
    from trtpipe.engines.trtllm.format_checks import Quantized
    from trtpipe.engines.trtllm.lengths import Lengths
    from trtpipe.engines.trtllm.limits import Limits
    from trtpipe.engines.trtllm.memory import Memory


@dataclass(frozen=True)
class Plan:
    """``memory`` and ``limits`` are None where the ranks can't share the model out: then nothing can be counted."""

    target: TensorrtLlmTarget
    gpu: Gpu
    division: Division
    lengths: Lengths | None
    rows: dict[TensorrtLlmKvDtype, Capability | None]
    findings: tuple[Finding, ...]
    memory: Memory | None = None
    limits: Limits | None = None

    @property
    def refusals(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind == "refused"]

    def document(self) -> dict[str, Any]:
        """Return every figure, as `trtpipe plan --json` prints it."""
        division = self.division
        return {
            "legal": not self.refusals,
            "engine": f"TensorRT-LLM {self.target.version}",
            "gpu": asdict(self.gpu),
            "target": self.target.model_dump(),
            "quant_algo": QUANT_ALGO[self.target.weights],
            "model": asdict(division.shape),
            "division": {
                "world_size": division.tensor_parallel * division.pipeline_parallel,
                "intermediate": division.intermediate,
                "vocabulary": division.vocabulary,
                "qkv_width": division.qkv_width,
                "heads_per_rank": division.heads_of_rank,
                "kv_heads_per_rank": division.kv_heads_of_rank,
                "layers_by_stage": [len(division.layers_of(stage)) for stage in range(division.pipeline_parallel)],
            },
            "lengths": self.lengths and asdict(self.lengths),
            "findings": [finding.document() for finding in self.findings],
            "memory": self.memory and self.memory.document(),
            "kv": [self.kv_document(kv) for kv in KV_DTYPES],
            "limits": self.limits and self.limits.document(),
        }

    def kv_document(self, kv_dtype: TensorrtLlmKvDtype) -> dict[str, Any]:
        """Return what an engine with this KV type would have and hold, all else as the target says."""
        row = self.rows[kv_dtype]
        document: dict[str, Any] = {
            "kv_dtype": kv_dtype,
            "built": row is not None and row.built,
            "paged_context_fmha": row is not None and row.paged_context_fmha,
            "kv_reuse": row is not None and row.reuse,
            "chunked_context": row is not None and row.chunked_context,
            "why": row and row.why,
            "source": row and row.source,
            "verified": row and row.verified,
        }
        if self.memory is None or self.limits is None:
            return document
        pool = self.memory.pools[kv_dtype]
        document |= {
            "bytes_per_token_per_rank": pool.bytes_per_token,
            "tokens": pool.tokens,
            "blocks": pool.blocks,
            "full_length_sequences": pool.sequences(self.limits.seq_len),
        }
        if self.lengths is not None:
            for quantile in ("p50", "p95"):
                tokens = self.lengths.sequence_tokens(quantile, self.target.answer_tokens_max)
                document[f"{quantile}_sequences"] = pool.sequences(min(tokens, self.limits.seq_len))
        return document


def make(
    config: dict[str, Any],
    target: TensorrtLlmTarget,
    *,
    where: str,
    gpu_where: str = "gpu",
    quantized: Quantized | None = None,
    lengths: Lengths | None = None,
    more: tuple[Finding, ...] = (),
) -> Plan:
    """Plan. ``config``: config.json, found at ``where``; ``more``: findings about the model's other files.

    Raises ConfigError where config.json is no dense decoder's, or the GPU type is unknown.
    """
    gpu, shape = gpu_of(target.gpu, gpu_where), DecoderShape.of(config, where)
    division = Division(
        shape, target.weights, target.group_size, target.tensor_parallel, target.pipeline_parallel,
        target.pad_intermediate, is_exported(shape.model_type, target),
    )  # fmt: skip
    rows = format_checks.kv_rows(target, gpu)
    findings = [
        *more,
        *format_checks.family(target, shape),
        *format_checks.origin(target, quantized),
        *format_checks.engine(target, gpu),
        *sharing_checks.head_width(division),
    ]
    shared = list(sharing_checks.sharing(division))
    findings += [*shared, *sharing_checks.node(division)]
    bare = Plan(target, gpu, division, lengths, rows, tuple(findings))
    if any(finding.kind == "refused" for finding in shared):
        findings += _about_the_engine(bare, {}, None)
        return Plan(target, gpu, division, lengths, rows, _in_order(findings))
    return _with_memory(bare)


def _with_memory(plan: Plan) -> Plan:
    target, division, lengths = plan.target, plan.division, plan.lengths
    row = plan.rows[target.kv_dtype]
    chunked = target.chunked_context and row is not None and row.chunked_context
    chosen, held = _chosen(plan, chunked_context=chunked)
    pool = held.pools[target.kv_dtype]
    findings = [
        *plan.findings,
        *_about_the_engine(plan, {kv: one.tokens for kv, one in held.pools.items()}, chosen),
        *memory_checks.lengths_and_limits(chosen, division.shape, lengths, chunked_context=chunked),
        *memory_checks.fits(
            target,
            chosen,
            pool,
            free_bytes=min(held.free_bytes),
            gpu_bytes=held.gpu_bytes,
            taken=held.words,
            wider=_wider(plan, chosen),
        ),
        *memory_checks.step_size(chosen),
        *memory_checks.rewritten(target, chosen, capability.speculation_of(target.version, target.speculative_mode)),
        *memory_checks.window(division.shape, chosen),
    ]
    return Plan(target, plan.gpu, division, lengths, plan.rows, _in_order(findings), held, chosen)


def _chosen(plan: Plan, *, chunked_context: bool) -> tuple[Limits, Memory]:
    """Return the limits with the largest batch that the KV cache beside them feeds, and the memory under them."""
    target, division, lengths = plan.target, plan.division, plan.lengths
    for candidate in limits.candidates(target, division.shape, lengths, chunked_context=chunked_context):
        held = memory.of(division, target, plan.gpu, candidate)
        fed = limits.fed(candidate, target, held.pools[target.kv_dtype], lengths)
        if fed is not None:
            return fed, held
    raise AssertionError("one request is always taken")


def _wider(plan: Plan, chosen: Limits) -> str | None:
    """Return the settings of the smallest larger TP size under which the KV cache holds a sequence of full length."""
    target, shape = plan.target, plan.division.shape
    family = family_of(shape.model_type)
    if family is None or not family.tensor_parallel:
        return None
    sizes = legal_sizes(shape, target.weights, pad=plan.division.exported).get(target.group_size, [])
    for size in (size for size in sizes if size > target.tensor_parallel):
        division = replace(plan.division, tensor_parallel=size)
        pad = "" if division.is_legal else ", pad_intermediate: true"
        division = replace(division, pad=True)
        wider = target.model_copy(update={"tensor_parallel": size})
        if memory.of(division, wider, plan.gpu, chosen).pools[target.kv_dtype].tokens >= chosen.seq_len:
            return f"tensor_parallel: {size}{pad}"
    return None


def _about_the_engine(plan: Plan, tokens: dict[TensorrtLlmKvDtype, int], chosen: Limits | None) -> Iterator[Finding]:
    """Yield what concerns an engine of these formats; nothing where there is none."""
    target, row = plan.target, plan.rows[plan.target.kv_dtype]
    if row is None or not row.built:
        return
    given = 0 if target.max_batch_size == "auto" else target.max_batch_size
    yield from format_checks.switched_off(target, row, plan.gpu, tokens, plan.lengths)
    yield from format_checks.speculation(target, row, chosen.batch_size if chosen else given)
    yield from format_checks.risks(target, plan.division.shape, plan.gpu)


def _in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return what refuses first, then what the builder changes, then the rest."""
    order = ("refused", "changed", "warning", "note")
    return tuple(sorted(findings, key=lambda finding: order.index(finding.kind)))
