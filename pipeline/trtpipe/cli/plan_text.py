"""A plan as a person reads it: verdict, findings, memory, KV types side by side, limits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm.capability import KV_DTYPES, KV_WORDS, QUANT_ALGO

if TYPE_CHECKING:
    from trtpipe.chain.plan import Planned
    from trtpipe.engines.trtllm.findings import Finding
    from trtpipe.engines.trtllm.memory import Memory
    from trtpipe.engines.trtllm.plan import Plan

WIDTH = 118
GIB = 1 << 30
PLURALS = {"refused": "refused", "changed": "changed by the builder", "warning": "to be warned of", "note": "to note"}


def text(planned: Planned) -> str:
    plan = planned.plan
    lines = [*heading(planned), *findings_text(plan.findings)]
    if plan.memory is None or plan.limits is None:
        lines += ["", "Memory and limits are not counted: the ranks cannot share this model out."]
    else:
        lines += ["", *_memory(plan.memory, plan.target.kv_memory_share), "", *_kv_table(plan), "", *_limits(plan)]
    return "\n".join(lines)


def heading(planned: Planned) -> Iterator[str]:
    plan, shape, target = planned.plan, planned.plan.division.shape, planned.plan.target
    ranks = target.tensor_parallel * target.pipeline_parallel
    algo = QUANT_ALGO[target.weights]
    yield from wrapped(
        "model",
        f"{planned.model} ({shape.model_type}: {shape.layers} layers, hidden {shape.hidden}, MLP {shape.intermediate}, "
        f"{shape.heads} heads, {shape.kv_heads} KV heads of {shape.head_width}, vocabulary {shape.vocabulary})",
    )
    yield from wrapped(
        "target",
        f"{planned.target} (TensorRT-LLM {target.version}, {ranks} x {plan.gpu.name}, TP {target.tensor_parallel}, "
        f"PP {target.pipeline_parallel}, weights {algo}{f' in groups of {target.group_size}' if 'W4' in algo else ''}, "
        f"KV cache {KV_WORDS[target.kv_dtype]})",
    )
    kinds = [finding.kind for finding in plan.findings]
    counts = ", ".join(f"{kinds.count(kind)} {words}" for kind, words in PLURALS.items() if kind in kinds)
    yield f"{'verdict':9}{'REFUSED' if plan.refusals else 'legal'}{f' ({counts})' if counts else ''}"


def findings_text(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield from wrapped(finding.kind, finding.what)
        for label, said in (("where", finding.where), ("why", finding.why), ("cost", finding.cost),
                            ("do", finding.fix), ("source", finding.source)):  # fmt: skip
            if said:
                yield from wrapped(f"  {label}", said)


def wrapped(label: str, said: str) -> list[str]:
    """Return lines of the screen's width, the label before the first and room for it before the others."""
    label = f"{label:9}" if len(label) <= 9 else f"{label}  "
    return textwrap.wrap(
        said, WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _memory(memory: Memory, share: float) -> Iterator[str]:
    free = f"{min(memory.free_bytes) / GIB:.2f} GiB"
    yield f"A GPU's {memory.gpu_bytes / GIB:.2f} GiB: {memory.words}, free {free}, {share:.0%} of that for KV."
    yield "Activations and runtime are estimates until an engine of yours has been measured (runtime_reserve_mib)."


def _kv_table(plan: Plan) -> Iterator[str]:
    documents = [plan.kv_document(kv) for kv in KV_DTYPES]
    counts = {
        "bytes_per_token_per_rank": "bytes a token and GPU",
        "tokens": "tokens",
        "blocks": f"blocks of {plan.target.kv_block_tokens}",
        "full_length_sequences": "sequences of max_seq_len",
        "p50_sequences": "sequences of the log's p50",
        "p95_sequences": "sequences of the log's p95",
    }
    features = {
        "paged_context_fmha": "paged context FMHA", "kv_reuse": "KV reuse", "chunked_context": "chunked context"
    }  # fmt: skip
    heads = [f"{KV_WORDS[kv]}{' *' if kv == plan.target.kv_dtype else ''}" for kv in KV_DTYPES]
    yield _row("KV cache (* the target's)", heads)
    for key, label in (counts | features).items():
        if key in documents[0]:
            yield _row(label, [_cell(document, key) for document in documents])
    row = plan.rows[plan.target.kv_dtype]
    if row is not None:
        yield from wrapped("row", f"from {row.source}; verified: {row.verified}")


def _cell(document: dict[str, Any], key: str) -> str:
    value = document[key]
    if not document["built"]:
        return "no engine"
    return ("possible" if value else "off") if isinstance(value, bool) else f"{value:,}"


def _row(label: str, cells: Iterable[str]) -> str:
    return "".join([f"{label:30}", *(f"{cell:>14}" for cell in cells)])


def _limits(plan: Plan) -> Iterator[str]:
    limits = plan.limits
    if limits is None:
        return
    yield "Build with"
    for name, limit in limits.document().items():
        yield from _wrapped_limit(name, limit)


def _wrapped_limit(name: str, limit: dict[str, Any]) -> list[str]:
    indent = f"  {name:15}{limit['value']:>8,}  "
    return textwrap.wrap(limit["why"], WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent))
